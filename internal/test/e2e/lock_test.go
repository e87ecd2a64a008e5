package e2e

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestLifeOfALock: the key is on every node, holds our token and has our TTL; an extension replaces
// the TTL, and after the release the key is on none.
func TestLifeOfALock(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		r := cluster.New(t, 5, cluster.Portable(portable))
		for name, acquire := range map[string]func() (redlock.Lock, error){
			"Acquire":    func() (redlock.Lock, error) { return r.Acquire(t.Context(), "orders:42", ttl) },
			"TryAcquire": func() (redlock.Lock, error) { return r.TryAcquire(t.Context(), "orders:42", ttl) },
		} {
			l, err := acquire()
			require.NoError(t, err, name)
			require.Equal(t, "orders:42", l.Key())
			require.Len(t, l.Token(), 22)
			for _, s := range r.Servers {
				testkit.Await(t, "set", func() bool { v, _ := s.Get("orders:42"); return v == l.Token() })
				require.Greater(t, s.TTL("orders:42"), ttl-testkit.Patience)
				require.LessOrEqual(t, s.TTL("orders:42"), ttl)
			}

			require.NoError(t, l.Extend(t.Context(), 2*ttl))
			for _, s := range r.Servers {
				testkit.Await(t, "extended", func() bool { return s.TTL("orders:42") > ttl })
				require.LessOrEqual(t, s.TTL("orders:42"), 2*ttl)
			}

			require.NoError(t, l.Release(t.Context()))
			r.AwaitEmpty(t)
			require.Empty(t, l.Token())
			require.Zero(t, l.Remaining())
		}
	})
}

// TestCommandsOnTheWire: PX and not PXAT, whole milliseconds rounded down, and
// the key as it was given, of any bytes.
func TestCommandsOnTheWire(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		r := cluster.New(t, 3, cluster.Portable(portable))
		for _, key := range []string{"k", "with space\r\nand lines", "\x00\xff", "{tag}:$9\r\n", string(make([]byte, redlock.MaxKey))} {
			l := cluster.MustAcquire(t, r.Client, key, 1234567*time.Microsecond)
			token := l.Token()
			r.AwaitCalls(t, 1, "SET", key)
			for _, e := range r.Recorders {
				require.Equal(t, []string{"SET", key, token, "NX", "PX", "1234"}, e.Calls("SET", key)[0].Args)
			}
			require.NoError(t, l.Release(t.Context()))
			r.AwaitEmpty(t)
		}
	})
}

// TestCopiesAreHandlesOnTheSameLock: extended and released through one, all
// others know.
func TestCopiesAreHandlesOnTheSameLock(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		l := cluster.MustAcquire(t, r.Client, "k", ttl)
		twin := l
		require.NoError(t, twin.Extend(t.Context(), 2*ttl))
		require.Greater(t, l.Remaining(), ttl)
		require.NoError(t, l.Release(t.Context()))
		require.Zero(t, twin.Remaining())
		require.Equal(t, redlock.ErrNotHeld, twin.Extend(t.Context(), ttl))
		require.Equal(t, redlock.ErrNotHeld, twin.Release(t.Context()))
		require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()), "twice")
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

// TestRemaining is TTL - elapsed - drift, recomputed on each call. elapsed is counted from before
// the first byte was on its way: not later than any node received it, however late the answers are.
func TestRemaining(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		r.Servers.Delay(30 * time.Millisecond)
		for _, ttl := range []time.Duration{2 * time.Second, time.Minute} {
			key := ttl.String()
			called := time.Now()
			l := cluster.MustAcquire(t, r.Client, key, ttl)
			heard := r.Recorders[0].Calls("SET", key)[0].At
			checkRemaining(t, l, called, heard, ttl)

			called = time.Now()
			require.NoError(t, l.Extend(t.Context(), 2*ttl))
			heard = r.Recorders[0].Calls("EVALSHA", key)[0].At
			checkRemaining(t, l, called, heard, 2*ttl)
			require.NoError(t, l.Release(t.Context()))
		}
	})
}

// checkRemaining checks the rest of a lock requested at some moment between two.
func checkRemaining(t *testing.T, l redlock.Lock, from, to time.Time, ttl time.Duration) {
	t.Helper()
	last := ttl
	for range 5 {
		before := time.Now()
		left := l.Remaining()
		after := time.Now()
		require.GreaterOrEqual(t, left, ttl-cluster.Drift(ttl)-after.Sub(from))
		require.LessOrEqual(t, left, ttl-cluster.Drift(ttl)-before.Sub(to))
		require.Less(t, left, last, "it counts down")
		last = left
		testkit.Await(t, "a tick of the clock", func() bool { return time.Since(after) > 2*time.Millisecond })
	}
}

// TestZeroLock is a handle on nothing.
func TestZeroLock(t *testing.T) {
	var l redlock.Lock
	require.Zero(t, l.Remaining())
	require.Empty(t, l.Token())
	require.Empty(t, l.Token())
	require.Equal(t, redlock.ErrNotHeld, l.Extend(t.Context(), time.Minute))
	require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()))
}
