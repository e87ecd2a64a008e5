package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestAttemptHearsTheResult: the hook gets the error that the caller gets, also
// where validity ends between the verdict and the return.
func TestAttemptHearsTheResult(t *testing.T) {
	const short = 50 * time.Millisecond
	start := func(t *testing.T, inHook time.Duration) (r *cluster.Cluster, heardOf func(key string) error) {
		var heard sync.Map
		r = cluster.New(t, 3, func(c *redlock.Config) {
			c.Hooks.Attempt = func(a redlock.Attempt) {
				if a.Kind == redlock.OpAcquire {
					time.Sleep(inHook) // it may use up the validity
					heard.Store(a.Key, &a.Err)
				}
			}
		})
		return r, func(key string) error {
			err, found := heard.Load(key)
			require.True(t, found, "not heard")
			return *err.(*error)
		}
	}
	cluster.Run(t, "call", func(t *testing.T) {
		r, heardOf := start(t, short)
		for i := range 3 {
			key := fmt.Sprint(i)
			_, err := r.TryAcquire(t.Context(), key, short)
			require.Equal(t, heardOf(key), err)
		}
	})
	cluster.Run(t, "op", func(t *testing.T) { // after others, each of them keeps it for 20 ms
		r, heardOf := start(t, 0)
		unclogged := r.Clog(t)
		for i := range 3 {
			slow := acquireOp(fmt.Sprint("slow ", i))
			slow.Done = func(*redlock.Op) { time.Sleep(short) }
			require.NoError(t, r.Submit(slow))
		}
		var ops []*redlock.Op
		var results []<-chan error
		for i := range 3 {
			op := acquireOp(fmt.Sprint(i))
			op.TTL = short
			ops, results = append(ops, op), append(results, cluster.Begin(t, r.Client, op))
		}
		r.Heal(t)
		unclogged()
		for i, result := range results {
			err := testkit.Outcome(t, "an operation", result)
			require.Equal(t, heardOf(fmt.Sprint(i)), err)
			require.ErrorIs(t, err, redlock.ErrExpired, "another may have the lock")
			require.Zero(t, ops[i].Remaining())
		}
	})
}

// TestNodeThatDiesIsHeard: its votes, its end and its return, in the hooks and
// in the log, once each, and nothing when the client is closed.
func TestNodeThatDiesIsHeard(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		var y cluster.HookRecorder
		var log testkit.LogSink
		servers := cluster.Start(t, 3)
		servers[2].Down() // from the start
		r := cluster.Of(t, servers, cluster.Portable(portable), cluster.Listening(&y), func(c *redlock.Config) {
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		expect := func(want ...string) {
			t.Helper()
			var all []string
			testkit.Await(t, strings.Join(want, ", "), func() bool {
				for _, n := range cluster.Take(&y, &y.Nodes) {
					require.Equal(t, r.Servers[n.Index].Addr(), n.Addr)
					require.Equal(t, n.Up, n.Err == nil)
					all = append(all, fmt.Sprint(n.Index, " ", n.Up, " ", n.Connects))
				}
				return len(all) >= len(want)
			})
			slices.Sort(all)
			require.Equal(t, want, all)
		}
		expect("0 true 1", "1 true 1", "2 false 0")
		require.Contains(t, log.String(), fmt.Sprintf("level=INFO msg=\"redlock: node is up\" node=%s server=", servers[0].Addr()))
		require.Contains(t, log.String(), fmt.Sprintf("level=WARN msg=\"redlock: node is down\" node=%s error=", servers[2].Addr()))
		require.NoError(t, servers[2].Heal())
		expect("2 true 1")

		servers[0].Mute()
		cluster.MustAcquire(t, r.Client, "k", ttl) // of the other two
		servers[0].Down()
		expect("0 false 1")
		failed := cluster.Take(&y, &y.Failed)
		testkit.Await(t, "the vote that failed", func() bool {
			failed = append(failed, cluster.Take(&y, &y.Failed)...)
			return len(failed) > 0
		})
		require.Len(t, failed, 1)
		require.Equal(t, redlock.OpAcquire, failed[0].Kind)
		require.Equal(t, 0, failed[0].Node)
		require.NotErrorIs(t, failed[0].Err, conn.ErrNotSent)
		require.NoError(t, r.Close())
		require.Empty(t, cluster.Take(&y, &y.Nodes), "that is no news")
		require.Equal(t, 5, strings.Count(log.String(), "redlock: node is "), log.String())
	})
}

// TestLockLostIsHeardOnce, by the first call that finds it out, and not for a released lock.
func TestLockLostIsHeardOnce(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		var y cluster.HookRecorder
		r := cluster.New(t, 1, cluster.Listening(&y))
		heard := func(want ...error) {
			t.Helper()
			var texts []string
			for _, err := range want {
				texts = append(texts, fmt.Sprint("k: ", err))
			}
			require.Equal(t, texts, cluster.Take(&y, &y.Lost))
		}
		l := cluster.MustAcquire(t, r.Client, "k", ttl)
		r.Servers[0].Del("k")
		require.Equal(t, redlock.ErrNotHeld, l.Extend(t.Context(), ttl))
		heard(redlock.ErrNotHeld)
		require.Equal(t, redlock.ErrExpired, l.Extend(t.Context(), ttl))
		require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()))
		heard()

		l = cluster.MustAcquire(t, r.Client, "k", ttl)
		r.Servers[0].Del("k")
		require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()))
		heard(redlock.ErrNotHeld)
		require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()), "a dead handle")
		heard()

		l, err := r.Acquire(t.Context(), "k", 100*time.Millisecond)
		require.NoError(t, err)
		testkit.Await(t, "expired", func() bool { return l.Remaining() == 0 })
		before := r.Stats().Extend
		require.ErrorIs(t, l.Extend(t.Context(), 0), redlock.ErrArgument, "a wrong argument comes first")
		require.Equal(t, before, r.Stats().Extend)
		heard()
		require.Equal(t, redlock.ErrExpired, l.Extend(t.Context(), ttl))
		heard(redlock.ErrExpired)
		_ = l.Release(t.Context())
		heard()

		l = cluster.MustAcquire(t, r.Client, "k", ttl)
		require.NoError(t, l.Extend(t.Context(), ttl))
		require.NoError(t, l.Release(t.Context()))
		heard()

		// A background release deleted the key: the lock was not lost.
		l = cluster.MustAcquire(t, r.Client, "k", ttl)
		r.Servers[0].Mute()
		require.Equal(t, context.Canceled, l.Release(ended(t)))
		r.AwaitEmpty(t)
		require.NoError(t, r.Servers[0].Heal())
		require.Equal(t, redlock.ErrNotHeld, l.Extend(t.Context(), ttl))
		require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()))
		heard()
	})
}

// TestLockReleasedByManyIsNotLost: of two goroutines releasing one lock, the first to begin may
// come second to the nodes. It learns that the lock is not held, but LockLost is not called: the
// lock was released.
func TestLockReleasedByManyIsNotLost(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		var y cluster.HookRecorder
		r := cluster.New(t, 3, cluster.Portable(portable), cluster.Listening(&y))
		l := cluster.MustAcquire(t, r.Client, "k", ttl)
		r.AwaitHolders(t, 3, "k")
		quicker := make(chan error, 1)
		ctx := userContext{t.Context(), in("Done", sync.OnceFunc(func() { quicker <- l.Release(context.Background()) }))}
		require.Equal(t, redlock.ErrNotHeld, testkit.Try(t, "Release", func() error { return l.Release(ctx) }))
		require.NoError(t, testkit.Outcome(t, "the quicker Release", quicker))
		require.Empty(t, cluster.Take(&y, &y.Lost))
	})
}

// TestARefusedExtendGaveNothingBack: a call that finds the lock gone later reports it.
func TestARefusedExtendGaveNothingBack(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		var y cluster.HookRecorder
		r := cluster.New(t, 1, cluster.Listening(&y), func(c *redlock.Config) { c.MaxWaiting = 1 })
		l := cluster.MustAcquire(t, r.Client, "k", ttl)
		unclogged := r.Clog(t) // one waits, as many as may
		require.Equal(t, redlock.ErrBusy, l.Extend(t.Context(), ttl))
		require.EqualValues(t, 1, r.Stats().Extend.Refused)
		require.NoError(t, r.Servers[0].Heal())
		unclogged()
		r.Servers[0].Del("k")
		require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()))
		require.Equal(t, []string{fmt.Sprint("k: ", redlock.ErrNotHeld)}, cluster.Take(&y, &y.Lost))

		l = cluster.MustAcquire(t, r.Client, "k", ttl)
		require.NoError(t, r.Close())
		require.Equal(t, redlock.ErrClosed, l.Release(t.Context()))
		require.NotZero(t, l.Remaining(), "no node was asked")
	})
}

// TestAcquireIsHeard: each Acquire with an attempt, once, at its end, with its result. If the hook
// panics its caller gets no lock, and none is left.
func TestAcquireIsHeard(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		heard := make(chan redlock.Acquisition, 10)
		r := cluster.New(t, 3, func(c *redlock.Config) {
			c.Hooks.Acquire = func(a redlock.Acquisition) {
				heard <- a
				if a.Key == "bad" {
					panic("of the hook")
				}
			}
		}).NoPushes()
		l, err := r.TryAcquire(t.Context(), "k", ttl)
		require.NoError(t, err)
		_, err = r.Acquire(t.Context(), "", ttl)
		require.Error(t, err)
		_, err = r.Acquire(ended(t), "k", ttl)
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, heard, "there was no attempt")

		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err = r.Acquire(ctx, "k", ttl)
		a := testkit.Get(t, heard)
		require.Equal(t, err, a.Err)
		var gaveUp *redlock.AcquireError
		require.ErrorAs(t, err, &gaveUp)
		require.Equal(t, redlock.Acquisition{Key: "k", Attempts: gaveUp.Attempts, Waited: a.Waited, Err: err, Ctx: ctx}, a)
		require.GreaterOrEqual(t, a.Waited, gaveUp.Waited)

		waiter := testkit.InBackground(func() (redlock.Lock, error) { return r.Acquire(t.Context(), "k", ttl) })
		tried := r.Stats().Acquire.Denied
		testkit.Await(t, "tries", func() bool { return r.Stats().Acquire.Denied > tried+2 })
		require.NoError(t, l.Release(t.Context()))
		require.NoError(t, testkit.Get(t, waiter).Err)
		a = testkit.Get(t, heard)
		require.NoError(t, a.Err)
		require.Greater(t, a.Attempts, 2)
		require.Positive(t, a.Waited)

		require.ErrorContains(t, testkit.Try(t, "Acquire", func() error { _, err := r.Acquire(context.Background(), "bad", ttl); return err }), "of the hook")
		testkit.Await(t, "the lock to be released", func() bool { return r.Holders("bad") == 0 })
		require.Len(t, heard, 1)
	})
}
