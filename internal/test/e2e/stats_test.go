package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestEndsAreCounted: each possible end of an operation, in Stats and in the hook of attempts: with its votes, the error that
// its caller gets, and the context of the caller, for tracing, but none of an Op. One node, so nothing depends on the first
// answer.
func TestEndsAreCounted(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		var y cluster.HookRecorder
		r := cluster.New(t, 1, cluster.Listening(&y))
		s := r.Servers[0]
		want := redlock.Stats{Nodes: make([]redlock.Node, 1)}
		node := &want.Nodes[0]
		// check looks at the counts: so many operations were sent since the last look, and so many attempts were heard of.
		check := func(operations int, attempts ...redlock.Attempt) {
			t.Helper()
			want.Operations += uint64(operations)
			got := cluster.Settle(t, r.Client)
			require.LessOrEqual(t, got.Batches, got.Operations)
			own := got.Nodes[0]
			own.Granted, own.Denied, own.Failed = node.Granted, node.Denied, node.Failed
			want.Batches, *node = got.Batches, own // the node's own is tested in package conn
			decided := uint64(0)
			for _, n := range got.AcquireTimes.Counts {
				decided += n
			}
			require.Equal(t, want.Acquire.Won+want.Acquire.Denied+want.Acquire.NoQuorum+want.Acquire.Expired, decided)
			want.AcquireTimes = got.AcquireTimes
			require.Equal(t, want, got)
			require.Equal(t, got.Operations, node.Granted+node.Denied+node.Failed)
			cluster.AwaitNews(t)
			heard := cluster.Take(&y, &y.Attempts)
			require.Len(t, heard, len(attempts))
			for i, a := range heard {
				require.True(t, a.Duration > 0 || a.Granted+a.Denied+a.Failed == 0, "%v", a.Err)
				attempts[i].Key, attempts[i].Duration, attempts[i].Ended = "k", a.Duration, a.Ended
				require.Equal(t, attempts[i], a)
			}
		}
		const acquire, extend, release = redlock.OpAcquire, redlock.OpExtend, redlock.OpRelease
		by := t.Context()
		none := func(kind redlock.OpKind, err error) redlock.Attempt {
			return redlock.Attempt{Kind: kind, Err: err, Ctx: by}
		}
		granted := func(kind redlock.OpKind) redlock.Attempt { return redlock.Attempt{Kind: kind, Granted: 1, Ctx: by} }
		denied := func(kind redlock.OpKind, err error) redlock.Attempt {
			return redlock.Attempt{Kind: kind, Denied: 1, Err: err, Ctx: by}
		}
		check(0)

		l := testkit.Must(r.TryAcquire(t.Context(), "k", ttl))(t)
		want.Acquire.Won, want.Held, node.Granted = 1, 1, 1
		check(1, granted(acquire))
		require.Equal(t, redlock.ErrTaken, errorOf(r.TryAcquire(t.Context(), "k", ttl)))
		want.Acquire.Denied, node.Denied = 1, 1
		check(1, denied(acquire, redlock.ErrTaken))
		require.ErrorIs(t, l.Extend(t.Context(), 0), redlock.ErrArgument, "that is no attempt")
		require.NoError(t, l.Extend(t.Context(), ttl))
		want.Extend.Won, node.Granted = 1, 2
		check(1, granted(extend))
		s.Set("k", "another's", 0)
		require.Equal(t, redlock.ErrNotHeld, l.Extend(t.Context(), ttl))
		want.Extend.Denied, want.Held, node.Denied = 1, 0, 2
		check(1, denied(extend, redlock.ErrNotHeld))
		require.Equal(t, redlock.ErrExpired, l.Extend(t.Context(), ttl))
		want.Extend.Expired = 1
		check(0, none(extend, redlock.ErrExpired))
		require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()))
		want.Release.Denied, node.Denied = 1, 3
		check(1, denied(release, redlock.ErrNotHeld))
		s.Del("k")

		by = nil
		op := &redlock.Op{Kind: acquire, Key: []byte("k"), TTL: ttl}
		require.NoError(t, cluster.Submit(t, r.Client, op))
		require.NoError(t, submitAs(t, r.Client, op, release))
		require.Equal(t, redlock.ErrNotHeld, cluster.Submit(t, r.Client, op))
		want.Acquire.Won, want.Release.Won, want.Release.Denied = 2, 1, 2
		node.Granted, node.Denied = 4, 4
		check(3, granted(acquire), granted(release), denied(release, redlock.ErrNotHeld))

		by = t.Context()
		s.ErrorReply("SET", "OOM command not allowed", 1)
		err := errorOf(r.TryAcquire(t.Context(), "k", ttl))
		testkit.As[*redlock.QuorumError](t, err)
		want.Acquire.NoQuorum, node.Failed = 1, 1 // and no cleanup: it was not executed
		check(1, redlock.Attempt{Kind: acquire, Failed: 1, Err: err, Ctx: by})
		s.Delay(2 * redlock.MinTTL)
		err = errorOf(r.TryAcquire(t.Context(), "k", redlock.MinTTL))
		require.Equal(t, redlock.ErrExpired, err)
		s.Delay(0)
		got := cluster.Settle(t, r.Client) // the key may have ended before the cleanup came, or not
		want.Acquire.Expired, want.Cleanups = 1, 1
		node.Granted, node.Denied = got.Nodes[0].Granted, got.Nodes[0].Denied
		check(2, redlock.Attempt{Kind: acquire, Granted: 1, Err: err, Ctx: by})

		s.Mute()
		by, cancel := context.WithCancel(t.Context())
		lost := testkit.Start(func() error { return errorOf(r.TryAcquire(by, "k", ttl)) })
		testkit.Await(t, "sent", func() bool { return r.Stats().InFlight == 1 })
		cancel()
		require.Equal(t, context.Canceled, testkit.Get(t, lost))
		require.Equal(t, context.Canceled, errorOf(r.TryAcquire(by, "k", ttl)), "and that was no attempt")
		require.NoError(t, s.Heal())
		want.Acquire.Cancelled, want.Cleanups = 1, 2
		node.Granted += 2
		check(2, none(acquire, context.Canceled))
		s.Mute()
		by, op.Kind, op.Done = nil, acquire, func(*redlock.Op) {}
		require.NoError(t, r.Submit(op))
		testkit.Await(t, "sent", func() bool { return r.Stats().InFlight == 1 })
		require.True(t, r.Cancel(op))
		require.False(t, r.Cancel(op))
		require.NoError(t, s.Heal())
		want.Acquire.Cancelled, want.Cleanups = 2, 3
		node.Granted += 2
		check(2, none(acquire, context.Canceled))

		require.ErrorContains(t, submitRefused(r.Client, ""), "empty", "nor is that")
		require.NoError(t, r.Close())
		require.Equal(t, redlock.ErrClosed, submitRefused(r.Client, "k"))
		require.Equal(t, redlock.ErrClosed, errorOf(r.Acquire(t.Context(), "k", ttl)))
		want.Acquire.Refused = 2
		check(0) // no hook hears of what comes after Close
	})
}

// submitRefused submits an operation to be refused.
func submitRefused(c *redlock.Client, key string) error {
	return c.Submit(&redlock.Op{Kind: redlock.OpAcquire, Key: []byte(key), TTL: ttl, Done: func(*redlock.Op) {}})
}

// TestStatsUnderLoad: of a thousand goroutines that acquire, extend and release, many give up at a random moment. Each comes
// back, and no node keeps a key. Counts, asked for all the time, by several, never go back, and in the end they are those of
// the hooks.
func TestStatsUnderLoad(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		var heard cluster.HookRecorder
		r := cluster.New(t, 3, cluster.Portable(portable), cluster.Listening(&heard))
		const lasting = time.Hour // what is left does not end by itself
		var workers, askers sync.WaitGroup
		for g := range 1000 {
			workers.Go(func() {
				for i := range 2 {
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					if (g+i)%3 == 0 {
						time.AfterFunc(rand.N(10*time.Millisecond), cancel)
					}
					if l, err := r.TryAcquire(ctx, fmt.Sprint(g/2), lasting); err == nil {
						_ = l.Extend(ctx, lasting)
						_ = l.Release(ctx)
					}
				}
			})
		}
		done := make(chan struct{})
		for range 2 {
			askers.Go(func() {
				var last redlock.Stats
				for !testkit.IsClosed(done) {
					s := r.Stats()
					if s.Acquire.Won < last.Acquire.Won || s.Operations < last.Operations || s.InFlight < 0 || len(s.Nodes) != 3 {
						t.Errorf("%+v after %+v", s, last)
					}
					last = s
				}
			})
		}
		testkit.Join(t, &workers)
		close(done)
		testkit.Join(t, &askers)
		r.AwaitEmpty(t)
		require.Positive(t, r.Stats().Acquire.Cancelled)
		requireHeard(t, r, &heard)
		testkit.Await(t, "the hook of the last vote", func() bool {
			s := r.Stats()
			heard.Mu.Lock()
			defer heard.Mu.Unlock()
			return !slices.ContainsFunc(s.Nodes, func(n redlock.Node) bool {
				return heard.Votes[n.Index] != [3]uint64{n.Granted, n.Denied, n.Failed} || n.Granted+n.Denied+n.Failed != s.Operations
			})
		})
	})
}

// requireHeard waits until nothing is under way. The hooks have then heard of what Stats counts.
func requireHeard(t *testing.T, r *cluster.Cluster, heard *cluster.HookRecorder) {
	t.Helper()
	s := cluster.Settle(t, r.Client)
	want := [4]cluster.Results{redlock.OpAcquire: s.Acquire, redlock.OpExtend: s.Extend, redlock.OpRelease: s.Release}
	testkit.Await(t, "the hooks", func() bool {
		heard.Mu.Lock()
		defer heard.Mu.Unlock()
		return heard.Kinds == want
	})
}

// TestLateStats: Stats counts what callers and hooks hear, at whichever reading of the clock a
// machine was found to have been suspended.
func TestLateStats(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		var heard cluster.HookRecorder
		r, left := sleeping(t, 3, 2*ttl, cluster.Listening(&heard))
		for n := range int64(16) {
			for _, call := range []func(l redlock.Lock, key string){
				func(_ redlock.Lock, key string) { _, _ = r.TryAcquire(t.Context(), key, ttl) },
				func(_ redlock.Lock, key string) { _, _ = r.TryAcquireAll(t.Context(), ttl, key, key+" too") },
				func(_ redlock.Lock, key string) { _ = cluster.Submit(t, r.Client, acquireOp(key)) },
				func(l redlock.Lock, _ string) { _ = l.Extend(t.Context(), ttl) },
				func(l redlock.Lock, _ string) { _ = l.Release(t.Context()) },
			} {
				r.AwaitUp(t)
				l := cluster.MustAcquire(t, r.Client, "held", ttl)
				left.Store(n + 1)
				call(l, fmt.Sprint(n))
				left.Store(0)
				requireHeard(t, r, &heard)
				r.Servers.Flush()
			}
		}
	})
}

// TestAHookIsOnNoCallersWay: while one blocks, its caller goes on, and so do the other hooks, also while no node owes
// anything. It hears what was so when the attempt ended.
func TestAHookIsOnNoCallersWay(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		const blocks = time.Second
		heard, lost := make(chan redlock.Attempt, 2), make(chan time.Time, 1)
		r := cluster.New(t, 3, func(c *redlock.Config) {
			c.Hooks.Attempt = func(a redlock.Attempt) { time.Sleep(blocks); heard <- a }
			c.Hooks.LockLost = func(string, error) { lost <- time.Now() }
		})
		began := time.Now()
		l := cluster.MustAcquire(t, r.Client, "k", ttl)
		require.Less(t, time.Since(began), blocks)
		require.WithinRange(t, testkit.Get(t, heard).Ended, began, began.Add(blocks/2))
		time.Sleep(2 * ttl)
		began = time.Now()
		require.Equal(t, redlock.ErrExpired, l.Extend(t.Context(), ttl))
		require.Less(t, testkit.Get(t, lost).Sub(began), 50*time.Millisecond)
		require.Equal(t, began, testkit.Get(t, heard).Ended)
	})
}

// TestLossIsHeardLast: behind the attempt that has found it, also of a lock kept alive.
func TestLossIsHeardLast(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		heard := make(chan string, 16)
		r := cluster.New(t, 1, func(c *redlock.Config) {
			c.Hooks.Attempt = func(a redlock.Attempt) { heard <- fmt.Sprint(a.Kind, a.Err) }
			c.Hooks.LockLost = func(string, error) { heard <- "lost" }
		})
		l := cluster.MustAcquire(t, r.Client, "k", time.Second)
		_, stop := l.KeepAlive(t.Context())
		defer stop()
		r.Servers[0].Del("k")
		require.Equal(t, fmt.Sprint(redlock.OpAcquire, nil), testkit.Get(t, heard))
		require.Equal(t, fmt.Sprint(redlock.OpExtend, redlock.ErrNotHeld), testkit.Get(t, heard))
		require.Equal(t, "lost", testkit.Get(t, heard))
	})
}

// TestLockLostIsHeardOnce, by the first call that finds it out, and not for a released lock.
func TestLockLostIsHeardOnce(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		var y cluster.HookRecorder
		r := cluster.New(t, 1, cluster.Listening(&y))
		var l redlock.Lock
		acquire := func(ttl time.Duration) { l = cluster.MustAcquire(t, r.Client, "k", ttl) }
		extend := func() error { return l.Extend(t.Context(), ttl) }
		release := func() error { return l.Release(t.Context()) }
		// The call returns want, and the hook hears lost.
		heard := func(call func() error, want, lost error) {
			t.Helper()
			require.Equal(t, want, call())
			cluster.AwaitNews(t)
			var texts []string
			if lost != nil {
				texts = []string{fmt.Sprint("k: ", lost)}
			}
			require.Equal(t, texts, cluster.Take(&y, &y.Lost))
		}
		acquire(ttl)
		r.Servers[0].Del("k")
		heard(extend, redlock.ErrNotHeld, redlock.ErrNotHeld)
		heard(extend, redlock.ErrExpired, nil)
		heard(release, redlock.ErrNotHeld, nil)

		acquire(ttl)
		r.Servers[0].Del("k")
		heard(release, redlock.ErrNotHeld, redlock.ErrNotHeld)
		heard(release, redlock.ErrNotHeld, nil) // a dead handle

		acquire(100 * time.Millisecond)
		testkit.Await(t, "expired", func() bool { return l.Remaining() == 0 })
		before := r.Stats().Extend
		require.ErrorIs(t, l.Extend(t.Context(), 0), redlock.ErrArgument, "a wrong argument comes first")
		require.Equal(t, before, r.Stats().Extend)
		heard(extend, redlock.ErrExpired, redlock.ErrExpired)
		_ = release()

		acquire(ttl)
		heard(extend, nil, nil)
		heard(release, nil, nil)

		// A background release deleted the key: the lock was not lost.
		acquire(ttl)
		r.Servers[0].Mute()
		heard(func() error { return l.Release(ended(t)) }, context.Canceled, nil)
		r.AwaitEmpty(t)
		require.NoError(t, r.Servers[0].Heal())
		heard(extend, redlock.ErrNotHeld, nil)
		heard(release, redlock.ErrNotHeld, nil)
	})
}
