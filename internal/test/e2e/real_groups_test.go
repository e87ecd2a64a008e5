//go:build linux

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
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

// TestRealGroups: four groups of three real servers share the locks evenly; a killed node costs no
// lock. Then the groups become five under load, one client after another.
func TestRealGroups(t *testing.T) {
	if !testkit.Long() {
		t.Skip("15 servers: REDLOCK_LONG=1")
	}
	const workers, phase = 64, 5 * time.Second
	servers := realredis.StartN(t, 15)
	groups := slices.Collect(slices.Chunk(cluster.RealAddrs(servers), 3))
	connect := func(now, next [][]string) *redlock.Client {
		c, err := redlock.New(redlock.Config{Groups: now, NextGroups: next, NodeTimeout: time.Second})
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		require.NoError(t, c.Ready(t.Context()))
		return c
	}
	var clients [2]atomic.Pointer[redlock.Client]
	use := func(n int) *redlock.Client { return clients[n%2].Load() }
	clients[0].Store(connect(groups[:4], nil))
	clients[1].Store(connect(groups[:4], nil))

	var held [40]sync.Mutex // of keys wanted by all
	var shared, own atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	for w := range workers {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				time.Sleep(rand.N(5 * time.Millisecond)) // 15 servers may share a core
				c := use(w)
				l, err := c.TryAcquire(context.Background(), fmt.Sprint("own:", w, ":", n), changeTTL)
				if err == nil {
					err = l.Release(context.Background())
				}
				if err != nil {
					t.Error("a free lock: ", err)
					return
				}
				own.Add(1)
				if n%8 > 0 {
					continue
				}
				k := (w*31 + n/8) % len(held)
				l, err = c.Acquire(context.Background(), fmt.Sprint("shared:", k), changeTTL)
				if err != nil {
					t.Error("a shared lock: ", err)
					return
				}
				if !held[k].TryLock() {
					t.Error("two hold ", l.Key())
					return
				}
				shared.Add(1)
				held[k].Unlock()
				_ = l.Release(context.Background())
			}
		})
	}
	time.Sleep(phase)
	granted := [4]uint64{}
	for i := range clients {
		for _, n := range use(i).Stats().Nodes {
			granted[n.Index/3] += n.Granted
		}
	}
	sum := granted[0] + granted[1] + granted[2] + granted[3]
	for i, n := range granted {
		require.InEpsilon(t, float64(sum)/4, n, 0.1, "group %d", i)
	}
	require.NoError(t, servers[4].Kill())
	time.Sleep(phase)
	require.Zero(t, use(0).Stats().Acquire.NoQuorum+use(1).Stats().Acquire.NoQuorum)
	require.NoError(t, servers[4].Restart())

	for step, lists := range [][2][][]string{{groups[:4], groups}, {groups, nil}} {
		for i := range clients { // the last step's are used to the end of their work
			clients[i].Store(connect(lists[0], lists[1]))
			time.Sleep(phase / 2)
		}
		t.Logf("step %d: %d free locks, %d shared", step+1, own.Load(), shared.Load())
	}
	stop()
	all.Wait()
	for i, n := range use(0).Stats().Nodes {
		require.Positive(t, n.Granted, i)
	}
}
