package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestFirstThatLeaves wakes the next, though its context ends just as it is woken itself.
func TestFirstThatLeaves(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3, rarely, func(c *redlock.Config) { c.NoHandOver = true }).NoPushes()
		for i := range 20 {
			key := fmt.Sprint("k", i)
			held := cluster.MustAcquire(t, r.Client, key, ttl)
			ctx, cancel := context.WithCancel(t.Context())
			first := inLine(t, r.Client, ctx, key, 1)
			next := inLine(t, r.Client, t.Context(), key, 2)
			time.Sleep(50 * time.Millisecond) // until they have nothing left to do but to wait
			cancel()
			held.ReleaseAsync() // before its goroutine runs
			require.ErrorIs(t, testkit.Get(t, first).Err, context.Canceled)
			locked(t, next).ReleaseAsync()
		}
		require.Zero(t, r.Stats().InLine)
	})
}

// TestWhatIsNotPassedOn: a lock with a known token, or with too little time left, goes back to the nodes.
func TestWhatIsNotPassedOn(t *testing.T) {
	for name, c := range map[string]struct {
		held time.Duration
		use  func(l redlock.Lock)
		want uint64
	}{
		"as it is":     {ttl, func(redlock.Lock) {}, 1},
		"token told":   {ttl, func(l redlock.Lock) { _ = l.Token() }, 0},
		"too little":   {ttl / 2, func(redlock.Lock) {}, 0},
		"more":         {2 * ttl, func(redlock.Lock) {}, 0},
		"kept alive":   {ttl, func(l redlock.Lock) { _, _ = l.KeepAlive(context.Background()) }, 1},
		"was extended": {ttl / 2, func(l redlock.Lock) { _ = l.Extend(context.Background(), ttl) }, 1},
	} {
		cluster.Run(t, name, func(t *testing.T) {
			r := cluster.New(t, 3)
			held := cluster.MustAcquire(t, r.Client, "k", c.held)
			c.use(held)
			next := inLine(t, r.Client, t.Context(), "k", 1)
			require.NoError(t, held.Release(t.Context()))
			got := locked(t, next)
			require.Equal(t, c.want, r.Stats().HandedOver)
			require.Greater(t, got.Remaining(), ttl/8*7-time.Second)
			require.Equal(t, redlock.ErrNotHeld, held.Extend(t.Context(), ttl))
			require.Zero(t, held.Remaining())
			require.NoError(t, got.Release(t.Context()))
		})
	}
}

// TestReleaseBesideRelease: of two releases of a lock one passes it on. The other must not delete
// the key of the next holder: it has the same token. Its caller learns that the lock is not held, but LockLost is not called:
// it was released.
func TestReleaseBesideRelease(t *testing.T) {
	for _, hook := range []func(redlock.Attempt){nil, func(redlock.Attempt) {}} { // without hooks a release has a path of its own
		cluster.Virtually(t, func(t *testing.T) {
			r := cluster.New(t, 3, func(c *redlock.Config) {
				if c.Hooks.Attempt = hook; hook != nil {
					c.Hooks.LockLost = func(string, error) { t.Error("it was released") }
				}
			})
			held := cluster.MustAcquire(t, r.Client, "k", ttl)
			var next <-chan testkit.Result[redlock.Lock]
			ctx := userContext{t.Context(), in("Done", sync.OnceFunc(func() {
				next = inLine(t, r.Client, t.Context(), "k", 1)
				held.ReleaseAsync()
			}))}
			require.Equal(t, redlock.ErrNotHeld, held.Release(ctx))
			got := locked(t, next)
			require.EqualValues(t, 1, r.Stats().HandedOver)
			require.Equal(t, 3, r.Holders("k"))
			require.NoError(t, got.Release(t.Context()))
		})
	}
}

// TestPings: a caller who waits costs the nodes few questions, however short NodeTimeout is.
func TestPings(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Millisecond} {
		cluster.Virtually(t, func(t *testing.T) {
			r := cluster.New(t, 3, cluster.NodeTimeout(timeout))
			r.Servers.Take("k")
			ctx, cancel := context.WithCancel(t.Context())
			waiting := testkit.Start(func() error { _, err := r.Acquire(ctx, "k", ttl); return err })
			time.Sleep(10 * time.Second)
			pings := func() (n int64) {
				r.Servers.Each(func(s *fakeredis.Server) { n += s.Count("PING") })
				return n
			}
			before := pings()
			time.Sleep(10 * time.Second)
			n := pings() - before
			require.LessOrEqual(t, n, int64(150), "NodeTimeout %v", timeout)
			require.GreaterOrEqual(t, n, int64(100))
			cancel()
			require.Error(t, testkit.Get(t, waiting))
		})
	}
}

// TestAPlaceIsTakenBack: a node that refuses, or misses, what takes a process out of a queue is asked again, but not
// if the process waits there again.
func TestAPlaceIsTakenBack(t *testing.T) {
	for name, fault := range map[string]string{"refused": "-LOADING not now\r\n", "lost": "", "forgotten": "-NOSCRIPT No matching script.\r\n"} {
		cluster.Run(t, name, func(t *testing.T) {
			r := cluster.New(t, 3)
			r.Servers.Take("k")
			places := func() (n int) {
				for _, s := range r.Servers {
					for _, key := range s.Keys() {
						if strings.HasPrefix(key, "k:redlock:") {
							n++
						}
					}
				}
				return n
			}
			wait := func() (leave func()) {
				ctx, cancel := context.WithCancel(t.Context())
				waiting := testkit.Start(func() error { _, err := r.Acquire(ctx, "k", ttl); return err })
				testkit.Await(t, "a place", func() bool { return places() == 2 })
				return func() {
					cancel()
					require.Error(t, testkit.Get(t, waiting))
				}
			}
			var left atomic.Int64 // faults to come
			for _, s := range r.Servers {
				s.OnCommand(func(_ int64, args []string) {
					if strings.Contains(strings.Join(args, " "), " leave ") && left.Add(-1) >= 0 {
						if fault == "" {
							s.DropConn("EVALSHA", 1)
						} else {
							s.ErrorReply("EVALSHA", strings.TrimSuffix(fault[1:], "\r\n"), 1)
						}
					}
				})
			}
			faulty := func() {
				left.Store(1)
				wait()()
				testkit.Await(t, "the fault", func() bool { return left.Load() <= 0 })
			}
			faulty()
			began := time.Now()
			testkit.Await(t, "no place", func() bool { return places() == 0 })
			require.Less(t, time.Since(began), time.Second)
			require.EqualValues(t, -1, left.Load(), "one repeat")
			if name != "refused" {
				return // the process may wait at another node now, or has left at once, by the text of the script
			}
			faulty()
			leave := wait() // in the place that was not taken back
			time.Sleep(2 * time.Second)
			require.Equal(t, 2, places())
			require.Zero(t, left.Load(), "its place is taken back")
			leave()
			testkit.Await(t, "no place", func() bool { return places() == 0 })
		})
	}
}

// rarely keeps waiters from finding out by themselves, within a test, that a lock is free.
func rarely(c *redlock.Config) { c.Retry = redlock.Retry{Min: testkit.Patience, Max: testkit.Patience} }

// acquiring makes a call of Acquire in the background.
func acquiring(t *testing.T, c *redlock.Client, key string) <-chan testkit.Result[redlock.Lock] {
	return testkit.InBackground(func() (redlock.Lock, error) { return c.Acquire(t.Context(), key, ttl) })
}

// TestManyLines: the questions of many lines cost no vote of a node with a small bound of owed replies.
func TestManyLines(t *testing.T) {
	for _, limit := range []int{4, 128} {
		cluster.Run(t, fmt.Sprint(limit), func(t *testing.T) {
			const n = 200
			r := cluster.New(t, 1, func(c *redlock.Config) { knobs.Of(c).MaxInFlight = limit })
			other := cluster.Connect(t, fakeredis.Addrs(r.Servers))
			var held []redlock.Lock
			var waits []<-chan testkit.Result[redlock.Lock]
			for i := range n {
				key := fmt.Sprint("k", i)
				held = append(held, cluster.MustAcquire(t, other, key, ttl))
				waits = append(waits, acquiring(t, r.Client, key))
			}
			testkit.Await(t, "keys and tickets", func() bool { return r.Servers[0].TrackedKeys() == 2*n })
			for _, l := range held {
				l.ReleaseAsync()
			}
			for _, wait := range waits {
				l := locked(t, wait)
				l.ReleaseAsync()
			}
			require.Zero(t, r.Stats().Nodes[0].Failed)
		})
	}
}
