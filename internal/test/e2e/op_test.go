package e2e

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestOpWithin: with nodes that are silent an operation ends at its own time, whether it is sent or waits for the window; it
// is its user's again in Done; and nothing of it stays at the nodes.
func TestOpWithin(t *testing.T) {
	cluster.On(t, 3, func(t *testing.T, r *cluster.Cluster) {
		l := cluster.MustAcquire(t, r.Client, "held", ttl)
		for _, n := range []int{1, 3000} { // one is sent; of many most wait, for more looks than one
			r.Servers.Mute()
			ends := make(chan error, 3*n)
			for i := range 3 * n {
				within := time.Duration(20+i%7) * time.Millisecond
				op := &redlock.Op{Kind: redlock.OpKind(1 + i%3), Key: fmt.Append(nil, i), TTL: ttl, Within: within}
				op.SetToken(foreign)
				turn, began := 0, time.Now()
				op.Done = func(op *redlock.Op) {
					if late := time.Since(began) - within; late < 0 || late > tick {
						t.Errorf("%v ends %v after its time", op.Kind, late)
					}
					if turn++; turn < 3 && op.Err() == context.DeadlineExceeded {
						began = time.Now()
						if r.Submit(op) == nil {
							return
						}
					}
					ends <- op.Err()
				}
				require.NoError(t, r.Submit(op))
			}
			for range 3 * n {
				require.Equal(t, context.DeadlineExceeded, testkit.Get(t, ends))
			}
			r.Heal(t)
			cluster.AwaitHooks(t, r.Client)
			cluster.Settle(t, r.Client)
			r.AwaitHolders(t, 3, "held")
			for _, s := range r.Servers {
				testkit.Await(t, "nothing stays", func() bool { return s.Len() == 1 })
			}
		}
		require.Positive(t, r.Stats().Acquire.Cancelled)
		op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte("k"), TTL: ttl, Within: time.Second}
		require.NoError(t, cluster.Submit(t, r.Client, op), "and its time bounds no lock")
		time.Sleep(2 * time.Second)
		require.Positive(t, op.Remaining())
		ends := make(chan error, 2)
		op.Kind, op.Within, op.Done = redlock.OpExtend, 0, func(op *redlock.Op) {
			if ends <- op.Err(); op.Kind == redlock.OpExtend {
				op.Kind = redlock.OpRelease
				_ = r.Submit(op)
			}
		}
		require.NoError(t, r.Submit(op))
		for range 2 {
			require.NoError(t, testkit.Get(t, ends))
		}
		for _, op.Within = range []time.Duration{-1, redlock.MaxTTL + 1} {
			require.ErrorIs(t, r.Submit(op), redlock.ErrArgument)
		}
		require.NoError(t, l.Release(t.Context()))
	}, cluster.NodeTimeout(time.Minute), func(c *redlock.Config) { c.StallTimeout = time.Hour })
}

// acquireOp is an operation whose result is ignored.
func acquireOp(key string) *redlock.Op {
	return &redlock.Op{Kind: redlock.OpAcquire, Key: []byte(key), TTL: ttl, Done: func(*redlock.Op) {}}
}

// releaseOp is the release of a free lock.
func releaseOp(key string, done func(*redlock.Op)) *redlock.Op {
	op := cluster.ReleaseOp(key)
	op.Done = done
	return op
}

// TestExtendBehindARelease: a release counts even if called while Extend is between its checks and
// the nodes. No node is asked to extend.
func TestExtendBehindARelease(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r, l := heldEverywhere(t)
		ctx := userContext{context.Background(), in("Done", sync.OnceFunc(func() {
			_ = l.Release(ended(t)) // it is sent, and not waited for
		}))}
		require.ErrorIs(t, l.Extend(ctx, ttl), redlock.ErrNotHeld)
		r.AwaitEmpty(t)
		for _, heard := range r.Recorders {
			for _, c := range heard.Calls("EVALSHA", "k") {
				require.Len(t, c.Args, 5, "a release has no TTL")
			}
		}
	})
}

// tick is the longest of the watchdog.
const tick = 5 * time.Millisecond

// pairTime is how long it takes to acquire and release a lock.
func pairTime(c *redlock.Client, key string) time.Duration {
	began := time.Now()
	_ = pair(c, key, ttl)
	return time.Since(began)
}

// TestSlowDoneDelaysNoCall: callbacks that take 10 ms, too little for another goroutine to go on
// beside them, do not hold up callers waiting for replies. Nor is a call in a callback slow.
func TestSlowDoneDelaysNoCall(t *testing.T) {
	cluster.On(t, 3, func(t *testing.T, r *cluster.Cluster) {
		unclogged := r.Clog(t)
		var calls atomic.Int64
		const slow = 30
		for range slow {
			require.NoError(t, r.Submit(releaseOp("slow", func(*redlock.Op) { calls.Add(1); time.Sleep(10 * time.Millisecond) })))
		}
		r.Heal(t)
		unclogged()
		for range 10 {
			require.Less(t, pairTime(r.Client, "k"), tick)
		}
		require.Less(t, calls.Load(), int64(slow), "the callbacks ended before the calls")

		took := make(chan time.Duration, 1)
		require.NoError(t, r.Submit(releaseOp("k", func(*redlock.Op) { took <- pairTime(r.Client, "in Done") })))
		require.Less(t, testkit.Get(t, took), tick)
	})
}

// TestBlockedDoneDelays the others of its batch for about 20 ms: for this long, and for the ticks
// before and after it. Close does not wait for it.
func TestBlockedDoneDelays(t *testing.T) {
	cluster.On(t, 3, func(t *testing.T, r *cluster.Cluster) {
		unblock := make(chan struct{})
		t.Cleanup(func() { close(unblock) })
		unclogged := r.Clog(t)
		began, ended := make(chan time.Time, 1), make(chan time.Time, 1)
		require.NoError(t, r.Submit(releaseOp("blocks", func(*redlock.Op) { began <- time.Now(); <-unblock })))
		require.NoError(t, r.Submit(releaseOp("behind", func(*redlock.Op) { ended <- time.Now() })))
		r.Heal(t)
		unclogged()
		from := testkit.Get(t, began)
		require.Less(t, testkit.Get(t, ended).Sub(from), 20*time.Millisecond+3*tick)
		require.NoError(t, testkit.Try(t, "Close", r.Close))
	})
}

// TestBusy: an operation beyond MaxWaiting waiting ones is refused at once, and an Acquire tries again.
func TestBusy(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3, func(c *redlock.Config) { c.MaxWaiting = 1 })
		held := cluster.MustAcquire(t, r.Client, "held", ttl)
		unclogged := r.Clog(t) // one waits, as many as may
		began := time.Now()
		require.Equal(t, redlock.ErrBusy, held.Extend(t.Context(), ttl))
		require.EqualValues(t, 1, r.Stats().Extend.Refused)
		require.Equal(t, redlock.ErrBusy, errorOf(r.TryAcquire(t.Context(), "k", ttl)))
		require.Equal(t, redlock.ErrBusy, submitRefused(r.Client, "k"))
		require.Equal(t, began, time.Now())
		waiting := acquiring(t, r.Client, "k")
		time.Sleep(100 * time.Millisecond)
		r.Heal(t)
		unclogged()
		require.NoError(t, locked(t, waiting).Release(t.Context()))
	})
}

// TestOpOfAnotherLockIsOwed: an Op acquires a lock never received by one node, and then releases
// another. This is not taken for the release of the first.
func TestOpOfAnotherLockIsOwed(t *testing.T) {
	cluster.On(t, 3, func(t *testing.T, r *cluster.Cluster) {
		op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte("held"), TTL: ttl}
		require.NoError(t, cluster.Submit(t, r.Client, op))
		held := op.Token()
		testkit.Await(t, "set everywhere", func() bool { return r.Holders("held") == 3 })
		r.Servers[2].Down()
		testkit.Await(t, "node 2 down", func() bool { return !r.Stats().Nodes[2].Up })
		op.Key = []byte("unheard of")
		require.NoError(t, cluster.Submit(t, r.Client, op))
		require.NoError(t, submitAs(t, r.Client, op, redlock.OpRelease))
		op.Kind, op.Key = redlock.OpAcquire, []byte("unheard of")
		require.NoError(t, cluster.Submit(t, r.Client, op))
		last := op.Token()
		op.Kind, op.Key = redlock.OpRelease, []byte("held")
		op.SetToken(held)
		require.NoError(t, cluster.Submit(t, r.Client, op))
		op.Key = []byte("unheard of")
		op.SetToken(last)
		require.NoError(t, cluster.Submit(t, r.Client, op))
		require.NoError(t, r.Servers[2].Heal())
		r.AwaitEmpty(t)
	})
}
