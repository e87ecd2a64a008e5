package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/realredis"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// soon is how long a lock may lie idle that is free on a quorum of the nodes and waited
// for, and at once how long where the process of the waiter has itself seen it end.
const (
	soon   = 1500 * time.Millisecond
	atOnce = 50 * time.Millisecond
)

// usualTTL is that of locks which users hold.
const usualTTL = 8 * time.Second

// usual configures a client as users do, with its nodes alone.
func usual(c *redlock.Config) { *c = redlock.Config{Nodes: c.Nodes} }

// patience is how long a waiter waits for a lock that is free before it gives up.
func patience() time.Duration {
	if testkit.Long() {
		return 11 * time.Second
	}
	return 2 * soon
}

// idle is how long locks lay idle, from an instant to the grant of a waiter.
type idle struct {
	mu     sync.Mutex
	took   []time.Duration
	gaveUp int
}

// require prints the figures, and requires that no waiter gave up, that the longest is at
// most long, and the median at most median.
func (d *idle) require(t *testing.T, median, long time.Duration) {
	t.Helper()
	slices.Sort(d.took)
	mid, longest := patience(), patience()
	if n := len(d.took); n > d.gaveUp {
		mid, longest = d.took[n/2], d.took[n-1]
	}
	t.Logf("%d of %d gave up after %v; the others: median %v, longest %v", d.gaveUp, d.gaveUp+len(d.took), patience(), mid, longest)
	require.Zero(t, d.gaveUp, "gave up")
	require.LessOrEqual(t, mid, median, "median")
	require.LessOrEqual(t, longest, long, "longest")
}

// waiter is a call of Acquire, which releases what it is granted at once.
type waiter struct {
	granted chan time.Time // one, or closed if it gives up
	cancel  context.CancelFunc
}

// startWaiter starts one and returns when it is in line.
func startWaiter(t *testing.T, c *redlock.Client, key string) *waiter {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &waiter{make(chan time.Time, 1), cancel}
	before := c.Stats().InLine
	go func() {
		defer close(w.granted)
		if l, err := c.Acquire(ctx, key, usualTTL); err == nil {
			w.granted <- time.Now()
			_ = l.Release(context.Background())
		}
	}()
	testkit.Await(t, "in line", func() bool { return c.Stats().InLine > before })
	return w
}

// since notes for how long the lock lay idle. The waiter gives up patience after.
func (w *waiter) since(from time.Time, d *idle) {
	defer time.AfterFunc(time.Until(from.Add(patience())), w.cancel).Stop()
	at, granted := <-w.granted
	d.mu.Lock()
	defer d.mu.Unlock()
	if granted {
		d.took = append(d.took, max(0, at.Sub(from)))
	} else {
		d.gaveUp++
	}
}

// TestRealLeftover: a key that a release leaves on one node, whichever that is, stops no
// waiter: the others are a quorum.
func TestRealLeftover(t *testing.T) {
	servers := realredis.StartN(t, 5)
	admins, nodes := cluster.NewAdmins(t, servers), cluster.RealAddrs(servers)
	const keys = 20 // for each node: each key has an order of the nodes of its own
	for name, cut := range map[string]bool{"another's, without TTL": false, "holder cut off": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			waiting := cluster.Connect(t, nodes, usual)
			var d idle
			var held []redlock.Lock
			var waiters []*waiter
			for node, a := range admins {
				net := newNetwork()
				holder := cluster.Connect(t, nodes, net.use)
				for i := range keys {
					key := fmt.Sprint(name[:1], node, ":", i)
					if !cut {
						a.Must("SET " + key + " another's")
					}
					held = append(held, cluster.MustAcquire(t, holder, key, time.Minute))
					cluster.Settle(t, holder) // the last nodes have it too, before another asks them
					waiters = append(waiters, startWaiter(t, waiting, key))
				}
				if cut {
					net.cut(nodes[node])
					cluster.AwaitNodesUp(t, holder, 4)
				}
			}
			awaitPassed(t, 200*time.Millisecond) // so that they have nothing left to do but to wait
			var all sync.WaitGroup
			for i, l := range held {
				from := time.Now()
				require.NoError(t, l.Release(t.Context()))
				all.Add(1)
				go func() { defer all.Done(); waiters[i].since(from, &d) }()
			}
			testkit.Join(t, &all)
			d.require(t, soon, soon)
		})
	}
}

// TestRealEndedOtherwise: a lock that was won in line ends, and not by a release of its
// handle. Waiters of the process that held it, the first in the queue, and of another,
// behind that, have it next.
func TestRealEndedOtherwise(t *testing.T) {
	servers := realredis.StartN(t, 5)
	nodes := cluster.RealAddrs(servers)
	deleted := func(t *testing.T, key string) {
		for _, s := range servers {
			cluster.NewAdmin(t, s).DoWords("DEL", key)
		}
	}
	for name, way := range map[string]struct {
		// end ends the lock. The waiters are to have it from when end returns.
		end    func(t *testing.T, c, third *redlock.Client, l redlock.Lock)
		median time.Duration
	}{
		"attached by another": {func(t *testing.T, _, third *redlock.Client, l redlock.Lock) {
			attached, err := third.Attach(t.Context(), l.Key(), l.Token(), time.Now().Add(l.Remaining()))
			assert.NoError(t, err)
			assert.NoError(t, attached.Release(t.Context()))
		}, soon},
		"by an operation": {func(t *testing.T, c, _ *redlock.Client, l redlock.Lock) {
			op := &redlock.Op{Kind: redlock.OpRelease, Key: []byte(l.Key())}
			copy(op.Token[:], l.Token())
			assert.NoError(t, cluster.Submit(t, c, op))
		}, atOnce},
		"by hand": {func(t *testing.T, _, _ *redlock.Client, l redlock.Lock) { deleted(t, l.Key()) }, soon},
		"by hand, kept alive": {func(t *testing.T, _, _ *redlock.Client, l redlock.Lock) {
			_, stop := l.KeepAlive(t.Context())
			t.Cleanup(stop)
			deleted(t, l.Key())
		}, soon},
		"by hand, seen by the keeper": {func(t *testing.T, _, _ *redlock.Client, l redlock.Lock) {
			kept, stop := l.KeepAlive(t.Context())
			defer stop()
			deleted(t, l.Key())
			<-kept.Done()
			assert.ErrorIs(t, context.Cause(kept), redlock.ErrNotHeld)
		}, atOnce},
		"by hand, seen by Extend": {func(t *testing.T, _, _ *redlock.Client, l redlock.Lock) {
			deleted(t, l.Key())
			assert.ErrorIs(t, l.Extend(t.Context(), usualTTL), redlock.ErrNotHeld)
		}, atOnce},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own, another, third := cluster.Connect(t, nodes, usual), cluster.Connect(t, nodes, usual), cluster.Connect(t, nodes)
			var same, other idle
			var locks []redlock.Lock
			var next, behind []*waiter
			for i := range 5 {
				key := fmt.Sprint(name, i)
				blocks := cluster.MustAcquire(t, third, key, usualTTL)
				won := testkit.InBackground(func() (redlock.Lock, error) { return own.Acquire(t.Context(), key, usualTTL) })
				before := own.Stats().InLine
				testkit.Await(t, "in line", func() bool { return own.Stats().InLine > before })
				next = append(next, startWaiter(t, own, key))
				require.NoError(t, blocks.Release(t.Context()))
				l := testkit.Get(t, won)
				require.NoError(t, l.Err)
				cluster.Settle(t, own)
				locks = append(locks, l.Value)
				behind = append(behind, startWaiter(t, another, key))
			}
			awaitPassed(t, 200*time.Millisecond) // so that they have nothing left to do but to wait
			var all sync.WaitGroup
			for i, l := range locks {
				all.Add(1)
				go func() {
					defer all.Done()
					way.end(t, own, third, l)
					from := time.Now()
					next[i].since(from, &same)
					behind[i].since(from, &other)
				}()
			}
			testkit.Join(t, &all)
			t.Run("same process", func(t *testing.T) { same.require(t, way.median, soon) })
			t.Run("other process", func(t *testing.T) { other.require(t, way.median, soon) })
		})
	}
}
