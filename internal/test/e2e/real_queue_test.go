//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// contest is clients in constant demand of one key, two callers each.
type contest struct {
	mu      sync.Mutex
	grants  []int // by client
	longest time.Duration
}

func startContest(t *testing.T, clients []*redlock.Client, key string, section time.Duration) *contest {
	t.Helper()
	x := &contest{grants: make([]int, len(clients))}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); all.Wait() })
	for i, c := range clients {
		for range 2 {
			all.Go(func() {
				for ctx.Err() == nil {
					began := time.Now()
					l, err := c.Acquire(ctx, key, ttl)
					x.mu.Lock()
					x.longest = max(x.longest, time.Since(began))
					if err == nil {
						x.grants[i]++
					}
					x.mu.Unlock()
					if err == nil {
						time.Sleep(section)
						_ = l.Release(context.Background())
					}
				}
			})
		}
	}
	return x
}

// window is the events in d from now on.
func (x *contest) window(d time.Duration) (grants []int, sum int, longest time.Duration) {
	x.mu.Lock()
	x.longest = 0
	before := slices.Clone(x.grants)
	x.mu.Unlock()
	time.Sleep(d)
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, n := range x.grants {
		grants, sum = append(grants, n-before[i]), sum+n-before[i]
	}
	return grants, sum, x.longest
}

// awaitAll waits until each client has had some grants more. A busy machine allows to assert
// nothing else.
func (x *contest) awaitAll(t *testing.T) {
	t.Helper()
	x.mu.Lock()
	before := slices.Clone(x.grants)
	x.mu.Unlock()
	testkit.Await(t, "all to be served", func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		for i, n := range x.grants {
			if n < before[i]+3 {
				return false
			}
		}
		return true
	})
}

// homeOf is the server with the queue of a key.
func homeOf(t *testing.T, servers []*realredis.Server, key string) (home int) {
	t.Helper()
	admins := cluster.NewAdmins(t, servers)
	testkit.Await(t, "a queue", func() bool {
		home = slices.IndexFunc(admins, func(a *cluster.Admin) bool { return a.Do("EXISTS "+key+":redlock:queue") == ":1" })
		return home >= 0
	})
	return home
}

// TestRealVainWaiters: on real servers too, a client that cannot win costs the others little.
func TestRealVainWaiters(t *testing.T) {
	t.Parallel()
	for name, vain := range map[string]struct {
		groups  int
		configs func(cfg *redlock.Config, home string) // of the one that cannot win
	}{
		"cut off from a majority": {1, func(cfg *redlock.Config, home string) {
			cfg.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if addr != home {
					return nil, errors.New("cut off")
				}
				return new(net.Dialer).DialContext(ctx, network, addr)
			}
		}},
		"in quarantine":                      {1, func(cfg *redlock.Config, _ string) { cfg.MaxTTL = time.Hour }},
		"a set with a group that is stopped": {2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			window, first := 10*time.Second, 2*time.Second
			if !testkit.Long() {
				window, first = 100*time.Millisecond, 100*time.Millisecond
			}
			servers := realredis.StartN(t, 3*vain.groups)
			configure := func(cfg *redlock.Config) {
				cfg.NodeTimeout, cfg.StallTimeout = 200*time.Millisecond, time.Second
				if addrs := cluster.PersistentAddrs(servers); vain.groups == 2 {
					cfg.Nodes, cfg.Groups = nil, [][]string{addrs[:3], addrs[3:]}
				}
			}
			key, other := movingKey(t, 0, 0), movingKey(t, 1, 1)
			clients, _ := rivals(t, cluster.PersistentAddrs(servers), configure)
			for _, c := range clients {
				require.NoError(t, c.Ready(t.Context()))
			}
			x := startContest(t, clients, key, time.Millisecond)
			home := servers[homeOf(t, servers[:3], key)].Addr()
			_, without, _ := x.window(window)
			in := clients[0]
			if vain.configs == nil {
				for _, s := range servers[3:] {
					require.NoError(t, s.Stop())
					t.Cleanup(func() { assert.NoError(t, s.Cont()) })
				}
			} else {
				in = cluster.Connect(t, cluster.RealAddrs(servers), configure, func(cfg *redlock.Config) { vain.configs(cfg, home) })
			}
			ctx, cancel := context.WithCancel(t.Context())
			waits := testkit.InBackground(func() (redlock.Lock, error) {
				if vain.groups == 2 {
					return in.AcquireAll(ctx, ttl, key, other)
				}
				return in.Acquire(ctx, key, ttl)
			})
			x.window(first) // its first attempts cost the others some
			shares, beside, _ := x.window(window)
			x.awaitAll(t)
			cancel()
			require.Error(t, testkit.Get(t, waits).Err)
			t.Logf("%s: %d grants without, %d beside it, %.2f; by client %v", name, without, beside, float64(beside)/float64(without), shares)
			if testkit.Long() {
				require.Greater(t, float64(beside), 0.8*float64(without))
			}
		})
	}
}

// TestRealUnfitQueueNode: a real server that refuses to keep the queue costs order no more than a
// dead one.
func TestRealUnfitQueueNode(t *testing.T) {
	t.Parallel()
	window := 20 * time.Second
	if !testkit.Long() {
		window = 100 * time.Millisecond
	}
	var down time.Duration
	kinds := []struct{ name, order string }{
		{"dead", ""}, {"NOPERM", "ACL SETUSER default -zadd"}, {"READONLY", "REPLICAOF 127.0.0.1 1"},
		{"OOM", "CONFIG SET maxmemory 1"}, {"NOREPLICAS", "CONFIG SET min-replicas-to-write 1"},
		{"wrong type", "RPUSH planted x; RENAME planted k:redlock:queue"},
	}
	if !testkit.Long() {
		kinds = kinds[1:2]
	}
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			servers := realredis.StartN(t, 3)
			var clients []*redlock.Client
			for range 8 {
				clients = append(clients, cluster.Connect(t, cluster.PersistentAddrs(servers)))
			}
			x := startContest(t, clients, "k", 10*time.Millisecond)
			home := servers[homeOf(t, servers, "k")]
			_, without, _ := x.window(window / 2)
			if kind.order == "" {
				require.NoError(t, home.Kill())
			} else {
				admin := cluster.NewAdmin(t, home)
				for order := range strings.SplitSeq(kind.order, "; ") {
					require.NotContains(t, admin.Do(order), "ERR")
				}
			}
			shares, beside, longest := x.window(window)
			if kind.order == "" {
				down = longest
			}
			t.Logf("%d grants in %v before, %d in %v after, longest wait %v, shares %v", without, window/2, beside, window, longest, shares)
			x.awaitAll(t)
			if testkit.Long() {
				require.LessOrEqual(t, longest, 2*down+500*time.Millisecond)
			}
		})
	}
}

// TestRealCloseAfterOverload: clients closed while nodes come back from a standstill leave no queue
// behind.
func TestRealCloseAfterOverload(t *testing.T) {
	if !testkit.Long() {
		t.Skip("how soon queues are left depends on the machine: REDLOCK_LONG=1")
	}
	t.Parallel()
	servers := realredis.StartN(t, 3)
	clients, _ := rivals(t, cluster.PersistentAddrs(servers), func(*redlock.Config) {})
	var all sync.WaitGroup
	for i := range 2000 {
		all.Go(func() {
			for {
				l, err := clients[i%2].Acquire(t.Context(), fmt.Sprint("k", i%400), ttl)
				if err != nil {
					return
				}
				time.Sleep(5 * time.Millisecond)
				_ = l.Release(context.Background())
			}
		})
	}
	admins := cluster.NewAdmins(t, servers)
	queues := func() (n int) {
		for _, a := range admins {
			n += strings.Count(a.Do("KEYS *:redlock:*"), ":redlock:")
		}
		return n
	}
	testkit.Await(t, "queues", func() bool { return queues() > 400 })
	for _, s := range servers {
		require.NoError(t, s.Stop())
	}
	awaitPassed(t, 500*time.Millisecond)
	for _, s := range servers {
		require.NoError(t, s.Cont())
	}
	for _, c := range clients {
		all.Go(func() { _ = c.Close() })
	}
	all.Wait()
	began := time.Now()
	testkit.Await(t, "no queue and no ticket", func() bool { return queues() == 0 })
	require.Less(t, time.Since(began), 3*time.Second)
}
