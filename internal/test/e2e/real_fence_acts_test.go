package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// keep holds a lock of its own from step to step until stop is closed, and counts the lost ones.
func (l *fencedLoad) keep(step int, stop <-chan struct{}) {
	c := l.connect(step)
	defer func() { _ = c.Close() }()
	lock, err := c.Acquire(l.Context(), fmt.Sprintf("%s kept %p", l.name, c), l.longest)
	if err != nil {
		return
	}
	ctx, end := lock.KeepAlive(l.Context())
	defer end()
	l.mu.Lock()
	l.kept++
	l.mu.Unlock()
	select {
	case <-stop:
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lost++
		l.Logf("a kept lock is lost in step %d: %v", step, context.Cause(ctx)) // where a server has no core for a TTL
	}
}

// cutOff makes acts by two clients at once, cut off at random, until one has returned nil.
func (l *fencedLoad) cutOff(step int) (calls int) {
	for end := time.Now().Add(time.Minute); ; {
		require.True(l, time.Now().Before(end), "no act returns")
		var both sync.WaitGroup
		var errs [2]error
		for i := range errs {
			calls++
			both.Go(func() {
				c := l.connect(step)
				defer func() { _ = c.Close() }()
				ctx, cancel := context.WithTimeout(l.Context(), rand.N(3*l.longest))
				defer cancel()
				time.Sleep(rand.N(loadTTL))
				errs[i] = c.ChangeFencing(ctx)
			})
		}
		both.Wait()
		if errs[0] == nil || errs[1] == nil {
			return calls
		}
		require.ErrorIs(l, errors.Join(errs[:]...), context.DeadlineExceeded)
	}
}

// TestRealFencedActs: a node is replaced and comes back, again and again, under load, by acts cut
// off at random; and a node is killed and started in between. REDLOCK_ACTS is for how long.
func TestRealFencedActs(t *testing.T) {
	if !testkit.Long() {
		t.Skip("set REDLOCK_LONG=1")
	}
	long, err := time.ParseDuration(os.Getenv("REDLOCK_ACTS"))
	if err != nil {
		long = 20 * time.Second
	}
	kind := realredis.Options{}
	if os.Getenv("REDLOCK_ACTS_KIND") == "valkey9" {
		kind.Kind = realredis.Valkey9
	}
	servers := realredis.StartN(t, 4, kind, kind, kind, kind)
	a := []string{servers[0].Addr(), servers[1].Addr(), servers[2].Addr()}
	b := []string{servers[0].Addr(), servers[1].Addr(), servers[3].Addr()}
	l := newFencedLoad(t, "acts", [3][2][]string{{a, nil}, {a, b}, {b, nil}})
	l.callers, l.timeout, l.longest = 64, 250*time.Millisecond, 3*loadTTL // also where other programs have the cores
	l.phase("all")
	l.initialize(0)
	l.roll(0)
	acts, changes := 0, 0
	for end := time.Now().Add(long); time.Now().Before(end) && !t.Failed(); changes++ {
		l.roll(1)
		every := l.connect(1)
		ctx, cancel := context.WithTimeout(t.Context(), 40*loadTTL)
		require.NoError(t, every.ReadyAll(ctx))
		stop, kept := make(chan struct{}), sync.WaitGroup{}
		kept.Go(func() { l.keep(1, stop) })
		time.Sleep(loadTTL / 2)
		acts += l.cutOff(1)
		l.roll(2)
		kept.Go(func() { l.keep(2, stop) })
		dead := servers[rand.IntN(4)]
		require.NoError(t, every.ReadyAll(ctx))
		require.NoError(t, dead.Kill())
		time.Sleep(rand.N(loadTTL))
		require.NoError(t, dead.Restart())
		require.NoError(t, every.ReadyAll(ctx))
		cancel()
		close(stop)
		kept.Wait()
		require.NoError(t, every.Close())
		l.lists = [3][2][]string{l.lists[2], {l.lists[1][1], l.lists[1][0]}, l.lists[0]}
	}
	l.endAll()
	l.report()
	t.Logf("%d changes, %d acts, %d grants; overlaps %d, tokens that fell %d; %d ended before their release; kept %d, lost %d", changes, acts, l.granted, l.overlaps, l.fell, l.late, l.kept, l.lost)
}

// TestRealFencedRestarts: three nodes are restarted one by one as conn/OPERATORS.md says, under
// load. No acquire fails: each has its NodeTimeout, enough to notice a lost connection, and two
// voting nodes.
func TestRealFencedRestarts(t *testing.T) {
	t.Parallel()
	servers := realredis.StartN(t, 3)
	const longest = 500 * time.Millisecond
	connect := func() *redlock.Client {
		return cluster.Connect(t, cluster.RealAddrs(servers), func(c *redlock.Config) { c.Fenced, c.MaxTTL, c.NodeTimeout = true, longest, 100*time.Millisecond })
	}
	waits := connect()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, waits.InitFencing(ctx))
	require.NoError(t, waits.ReadyAll(ctx))
	var all sync.WaitGroup
	var calls, failed atomic.Int64
	stop := make(chan struct{})
	for i := range 2 {
		c := connect()
		require.NoError(t, c.ReadyAll(ctx))
		for j := range 8 {
			key := fmt.Sprint("restarts ", i, j)
			all.Go(func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(time.Millisecond):
					}
					calls.Add(1)
					l, err := c.TryAcquire(ctx, key, longest)
					if err == nil {
						err = l.Release(ctx)
					}
					if err != nil {
						failed.Add(1)
						late := testkit.IsAny(err, redlock.ErrNoQuorum, redlock.ErrExpired, redlock.ErrNotHeld) // on a busy machine
						if !late || errors.Is(err, redlock.ErrForgotten) {
							t.Error(err)
						}
					}
				}
			})
		}
	}
	for _, s := range servers {
		time.Sleep(longest)
		require.NoError(t, s.Kill())
		require.NoError(t, s.Restart())
		require.NoError(t, waits.ReadyAll(ctx))
	}
	time.Sleep(longest)
	close(stop)
	all.Wait()
	if testkit.Long() {
		require.Less(t, 5*failed.Load(), calls.Load())
	}
	t.Logf("%d calls, %d failed", calls.Load(), failed.Load())
}
