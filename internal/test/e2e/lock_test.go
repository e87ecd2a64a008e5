package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestLifeOfALock: a SET with PX, not PXAT, and with whole milliseconds rounded down, puts our token at the key as it was
// given, of any bytes, on every node; an extension replaces the TTL, and after the release the key is on none.
func TestLifeOfALock(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		r := cluster.New(t, 3, cluster.Portable(portable))
		for i, key := range []string{"orders:42", "with space\r\nand lines", "\x00\xff", "{tag}:$9\r\n", string(make([]byte, redlock.MaxKey))} {
			acquire := []func(context.Context, string, time.Duration) (redlock.Lock, error){r.TryAcquire, r.Acquire}[i%2]
			l := testkit.Must(acquire(t.Context(), key, ttl+567*time.Microsecond))(t)
			require.Equal(t, key, l.Key())
			require.Len(t, l.Token(), 22)
			r.AwaitCalls(t, 1, "SET", key)
			for _, e := range r.Recorders {
				require.Equal(t, []string{"SET", key, l.Token(), "NX", "PX", "300000"}, e.Calls("SET", key)[0].Args)
			}
			require.NoError(t, l.Extend(t.Context(), 2*ttl))
			for _, s := range r.Servers {
				testkit.Await(t, "extended", func() bool { return s.TTL(key) > ttl })
				require.LessOrEqual(t, s.TTL(key), 2*ttl)
			}
			require.NoError(t, l.Release(t.Context()))
			r.AwaitEmpty(t)
			require.Empty(t, l.Token())
		}
	})
}

// TestDeadHandles: copies are handles on one lock: extended and released through one, all others know. Then each is dead,
// as the handle on nothing is.
func TestDeadHandles(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		l := cluster.MustAcquire(t, cluster.New(t, 3).Client, "k", ttl)
		twin := l
		require.NoError(t, twin.Extend(t.Context(), 2*ttl))
		require.Greater(t, l.Remaining(), ttl)
		require.NoError(t, l.Release(t.Context()))
		for _, dead := range []redlock.Lock{twin, l, {}} {
			require.Zero(t, dead.Remaining())
			require.Empty(t, dead.Token())
			require.Equal(t, redlock.ErrNotHeld, dead.Extend(t.Context(), ttl))
			require.Equal(t, redlock.ErrNotHeld, dead.Release(t.Context()))
			dead.ReleaseAsync()
		}
	})
}

// TestRemaining is TTL - elapsed - drift, recomputed on each call. elapsed is counted from the call on, before the first byte
// was on its way, however late the answers are.
func TestRemaining(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		r.Servers.Delay(30 * time.Millisecond)
		for _, ttl := range []time.Duration{2 * time.Second, time.Minute} {
			called := time.Now()
			l := cluster.MustAcquire(t, r.Client, "k", ttl)
			for range 2 {
				for range 2 {
					require.Equal(t, ttl-cluster.Drift(ttl)-time.Since(called), l.Remaining())
					time.Sleep(2 * time.Millisecond)
				}
				ttl, called = 2*ttl, time.Now()
				require.NoError(t, l.Extend(t.Context(), ttl))
			}
			require.NoError(t, l.Release(t.Context()))
		}
	})
}

// TestLockIsSafeForConcurrentUse: everything at once on one lock; one release wins. The race
// detector watches.
func TestLockIsSafeForConcurrentUse(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		r := cluster.New(t, 3, cluster.Portable(portable))
		for range 20 {
			l := cluster.MustAcquire(t, r.Client, "k", ttl)
			released := make(chan error, 8)
			var wg sync.WaitGroup
			for range cap(released) {
				wg.Add(2)
				go func() {
					defer wg.Done()
					released <- l.Release(t.Context())
				}()
				go func() {
					defer wg.Done()
					if err := l.Extend(t.Context(), ttl); err != nil && !testkit.IsAny(err, redlock.ErrNotHeld, redlock.ErrExpired) {
						t.Errorf("extend: %v", err)
					}
					_, _, _ = l.Remaining(), l.Key(), l.Token()
				}()
			}
			testkit.Join(t, &wg)
			close(released)
			won := 0
			for err := range released {
				if err == nil {
					won++
				} else {
					require.Equal(t, redlock.ErrNotHeld, err)
				}
			}
			require.Equal(t, 1, won)
			require.Zero(t, l.Remaining())
			r.AwaitEmpty(t)
		}
	})
}

// TestSlowestNodesDelayNoCaller: the verdict comes with the quorum, in both
// directions and for all three operations, while the others hang.
func TestSlowestNodesDelayNoCaller(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		r := cluster.New(t, 5, cluster.Portable(portable))
		r.Servers[:3].Take("taken")
		var lost [3]redlock.Lock
		for i := range lost {
			key := fmt.Sprint("lost ", i)
			lost[i] = cluster.MustAcquire(t, r.Client, key, ttl)
			for _, s := range r.Servers {
				testkit.Await(t, "set", func() bool { _, ok := s.Get(key); return ok })
			}
			r.Servers[:3].Del(key)
		}
		r.Servers[3].Hang()
		r.Servers[4].HangUnread()

		for _, lost := range lost { // the hung ones owe more each time
			testkit.AtOnce(t, func() {
				l := cluster.MustAcquire(t, r.Client, "k", ttl)
				require.NoError(t, l.Extend(t.Context(), ttl))
				require.NoError(t, l.Release(t.Context()))
				require.Equal(t, redlock.ErrTaken, errorOf(r.TryAcquire(t.Context(), "taken", ttl)))
				require.Equal(t, redlock.ErrNotHeld, lost.Extend(t.Context(), ttl))
				require.Equal(t, redlock.ErrNotHeld, lost.Release(t.Context()))
			})
		}
	})
}
