package e2e

import (
	"context"
	"errors"
	"fmt"
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
