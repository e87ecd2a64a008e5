package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
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
