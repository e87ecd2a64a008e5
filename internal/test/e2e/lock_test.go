package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
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
			r.AwaitHolders(t, 3, key)
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
	cluster.On(t, 3, func(t *testing.T, r *cluster.Cluster) {
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

// TestLockIsSafeForConcurrentUse: everything at once on one lock; one release wins. The race detector watches.
func TestLockIsSafeForConcurrentUse(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		r := cluster.New(t, 3, cluster.Portable(portable))
		for range 20 {
			l := cluster.MustAcquire(t, r.Client, "k", ttl)
			var won atomic.Int64
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					err := l.Release(t.Context())
					assert.True(t, err == nil && won.Add(1) == 1 || err == redlock.ErrNotHeld, "%v", err)
				})
				wg.Go(func() {
					err := l.Extend(t.Context(), ttl)
					assert.True(t, err == nil || testkit.IsAny(err, redlock.ErrNotHeld, redlock.ErrExpired), "%v", err)
					_, _, _ = l.Remaining(), l.Key(), l.Token()
				})
			}
			testkit.Join(t, &wg)
			require.EqualValues(t, 1, won.Load())
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

// TestExtendTooLate: once validity is over no node is asked, though the keys may still be there. An
// extension confirmed after the end of its own TTL changes nothing. One confirmed after the end of the
// validity that it extends is none, though its own TTL is long: another client may have held the lock.
func TestExtendTooLate(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		now := time.Now()
		r := cluster.Of(t, cluster.Start(t, 3, fakeredis.Options{Now: func() time.Time { return now }}))
		over := cluster.MustAcquire(t, r.Client, "over", 300*time.Millisecond)
		testkit.Await(t, "the end", func() bool { return over.Remaining() == 0 })
		require.Equal(t, redlock.ErrExpired, over.Extend(t.Context(), ttl))
		require.Zero(t, over.Remaining())
		cluster.Settle(t, r.Client)
		r.Servers.Each(func(s *fakeredis.Server) { require.Zero(t, s.Count("EVALSHA")) })
		require.NoError(t, over.Release(t.Context()))

		long := cluster.MustAcquire(t, r.Client, "long", ttl)
		late, later := cluster.MustAcquire(t, r.Client, "late", 100*time.Millisecond), cluster.MustAcquire(t, r.Client, "later", time.Second)
		r.Servers.Delay(150 * time.Millisecond)
		require.Equal(t, redlock.ErrExpired, late.Extend(t.Context(), ttl))
		require.NoError(t, long.Extend(t.Context(), 30*time.Millisecond))
		require.Greater(t, long.Remaining(), ttl/2)
		r.Servers.Delay(2 * time.Second)
		require.Equal(t, redlock.ErrExpired, later.Extend(t.Context(), time.Second))
		for _, lost := range []redlock.Lock{late, later} {
			require.Zero(t, lost.Remaining())
			require.NoError(t, lost.Release(t.Context()))
		}
	})
}

// TestKeptByHand: the holder of a lock kept alive may extend it, and keeps it alive once at a time;
// the stop of one KeepAlive does not end another.
func TestKeptByHand(t *testing.T) {
	cluster.On(t, 3, func(t *testing.T, r *cluster.Cluster) {
		l := cluster.MustAcquire(t, r.Client, "k", brief)
		first, stopFirst := l.KeepAlive(t.Context())
		second, stopSecond := l.KeepAlive(t.Context())
		require.Error(t, second.Err())
		require.ErrorContains(t, context.Cause(second), "kept alive already")
		require.ErrorContains(t, cluster.Keep(l, nil), "kept alive already")
		stopSecond()
		require.NoError(t, first.Err())
		require.NoError(t, l.Extend(t.Context(), 2*brief))
		require.Greater(t, l.Remaining(), brief)
		require.NoError(t, l.Extend(t.Context(), brief/3))
		time.Sleep(brief)
		require.NoError(t, context.Cause(first))
		require.Less(t, l.Remaining(), brief, "by the TTL that it was given last")
		stopFirst()
		for range 10 { // entries are used again
			third, stopThird := l.KeepAlive(t.Context())
			stopFirst()
			stopSecond()
			require.NoError(t, third.Err())
			require.Equal(t, 1, cluster.Stats(t, r.Client).KeptAlive)
			stopThird()
		}
		require.NoError(t, l.Release(t.Context()))
	})
}

// TestOvertakenExtend: an extend that waits for longer than the validity it is about, while renewals
// overtake it, brings what it was asked for.
func TestOvertakenExtend(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3, func(c *redlock.Config) { knobs.Of(c).MaxInFlight = 64 })
		l := cluster.MustAcquire(t, r.Client, "k", time.Second)
		require.NoError(t, cluster.Keep(l, nil))
		r.Servers.Delay(200 * time.Millisecond)
		for range 640 { // a dozen batches
			require.NoError(t, r.Submit(releaseOp("other", func(*redlock.Op) {})))
		}
		require.NoError(t, l.Extend(t.Context(), time.Hour))
		require.Greater(t, l.Remaining(), 50*time.Minute)
	})
}

// heldEverywhere starts masters and acquires a lock known to all of them.
func heldEverywhere(t *testing.T) (*cluster.Cluster, redlock.Lock) {
	t.Helper()
	r := cluster.New(t, 3)
	l := cluster.MustAcquire(t, r.Client, "k", ttl)
	r.AwaitHolders(t, 3, "k")
	return r, l
}

// TestReleaseAsync: the handle is dead at once, and the release keeps its place before an acquire
// of the same key, and travels with it: a pair is one round trip.
func TestReleaseAsync(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		const pairs = 100
		r := cluster.New(t, 5, cluster.Portable(portable))
		l := cluster.MustAcquire(t, r.Client, "k", ttl)
		testkit.Await(t, "a pair is a round trip", func() bool { // on a busy machine a tick may come between its two calls
			before := cluster.Settle(t, r.Client)
			for range pairs {
				l.ReleaseAsync()
				require.Zero(t, l.Remaining())
				require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()))
				l = cluster.MustAcquire(t, r.Client, "k", ttl) // in one attempt
			}
			after := cluster.Settle(t, r.Client)
			require.EqualValues(t, pairs, after.Release.Won-before.Release.Won, "each is sent once")
			require.EqualValues(t, 2*pairs, after.Operations-before.Operations)
			require.Equal(t, 1, after.Held)
			return after.Batches-before.Batches < pairs+pairs/4
		})
		time.Sleep(50 * time.Millisecond) // the client sleeps
		l.ReleaseAsync()
		r.AwaitEmpty(t)
		require.Zero(t, cluster.Settle(t, r.Client).Held)
	})
}

// TestARefusedReleaseIsRepeated until the node has answered it, after any error.
func TestARefusedReleaseIsRepeated(t *testing.T) {
	for name, flavor := range map[string]fakeredis.Flavor{"by script": fakeredis.Redis7, "native": fakeredis.Valkey9} {
		cluster.Run(t, name, func(t *testing.T) {
			r := cluster.Of(t, cluster.Start(t, 3, fakeredis.Options{Flavor: flavor}))
			for _, refusal := range []string{
				"NOPERM this user has no permissions to run the 'evalsha' command", "NOPERM No permissions to access a key",
				"ERR internal", "NOSCRIPT No matching script.", "BUSY Redis is busy running a script.", "OOM command not allowed",
				"READONLY You can't write against a read only replica.", "NOAUTH Authentication required.", "CODE of a later server",
			} {
				l := cluster.MustAcquire(t, r.Client, "lock:k", ttl)
				r.AwaitHolders(t, 3, l.Key())
				left := 1
				switch code, _, _ := strings.Cut(refusal, " "); code {
				case "NOPERM", "NOSCRIPT", "ERR": // after these it is sent again at once
					left = 2
				case "READONLY": // it ends the connection, and the hint is refused on the next one
					left = 2
				}
				r.Servers[0].OnCommand(func(_ int64, args []string) {
					if release := strings.HasPrefix(args[0], "EVAL") || args[0] == "DELIFEQ"; release && strings.Contains(strings.Join(args, " "), l.Key()) && left > 0 {
						left--
						r.Servers[0].ErrorReply(args[0], refusal, 1)
					}
				})
				require.NoError(t, l.Release(t.Context()))
				began := time.Now()
				awaitNoLock(t, r)
				require.Less(t, time.Since(began), 10*time.Second, refusal) // after READONLY a redial and the pause of a hint
				require.Zero(t, left, refusal)
				cluster.AwaitNodesUp(t, r.Client, 3)
			}
		})
	}
}

// TestSteadyLoad: a node that is late by more replies than it may owe keeps its connection, and no key is left there. It
// has no votes until it has caught up.
func TestSteadyLoad(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3, func(c *redlock.Config) { knobs.Of(c).MaxInFlight = 256 })
		r.Servers[0].Delay(time.Millisecond)
		r.Servers[1].Delay(time.Millisecond)
		r.Servers[2].Delay(40 * time.Millisecond) // of 1 s
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
			var callers sync.WaitGroup
			for i := range 64 {
				callers.Go(func() {
					l, err := r.Client.TryAcquire(t.Context(), fmt.Sprint(i), time.Minute)
					require.NoError(t, err)
					require.NoError(t, l.Release(t.Context()))
				})
			}
			callers.Wait()
		}
		r.AwaitEmpty(t)
		n := r.Client.Stats().Nodes[2]
		require.Equal(t, uint64(1), n.Connects)
		require.Positive(t, n.Failed, "it was never behind")
		require.Greater(t, n.Granted, uint64(2000))
	})
}
