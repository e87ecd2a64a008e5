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
	"github.com/redlock-go/redlock/internal/knobs"
	"github.com/redlock-go/redlock/internal/realredis"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// TestRealRestarts: two clients fight for three keys with brief TTLs, while three
// servers are killed in turn and started anew, the next before the last one votes
// again. Who is on guard, or has servers that forget nothing, breaks no promise.
func TestRealRestarts(t *testing.T) {
	t.Parallel()
	const brief = 400 * time.Millisecond
	for name, c := range map[string]struct {
		persistent bool
		change     func(*redlock.Config)
		forgets    bool // promises will be broken
	}{
		"on guard":             {change: func(*redlock.Config) {}},
		"strictly on guard":    {change: func(c *redlock.Config) { c.MaxTTL = brief }},
		"off guard":            {change: func(c *redlock.Config) { knobs.Of(c).TrustRestarts = true }, forgets: true},
		"persistent":           {persistent: true, change: func(*redlock.Config) {}},
		"persistent, strictly": {persistent: true, change: func(c *redlock.Config) { c.MaxTTL = brief }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := realredis.StartN(t, 3, realredis.Options{Persistent: c.persistent})
			addrs := cluster.RealAddrs(servers)
			if c.persistent {
				addrs = cluster.PersistentAddrs(servers)
			}
			var heard cluster.GuardRecorder
			var clients []*redlock.Client
			for i := range 2 {
				clients = append(clients, cluster.Connect(t, addrs, cluster.Portable(i == 1), cluster.NodeTimeout(100*time.Millisecond), heard.Of(0), unhurried, c.change))
			}
			keys := []*cluster.Promises{{Key: "a"}, {Key: "b"}, {Key: "c"}}
			for _, p := range keys {
				p.Plain = c.forgets // an extension gives a node its key back
			}
			stop := compete(t, clients, keys, brief)
			killInTurn(t, servers, clients, keys, c.forgets)
			stop()

			withheld, votes := heard.Take()
			require.Positive(t, votes[false])
			if c.persistent || c.forgets {
				require.Empty(t, withheld)
				require.Zero(t, votes[true])
			} else {
				require.NotEmpty(t, withheld)
				require.Positive(t, votes[true])
			}
			for _, p := range keys {
				if !c.forgets {
					require.Empty(t, p.Broken(), "two at once")
				}
				if c.persistent {
					require.Zero(t, p.Lost(), "locks were forgotten")
				}
			}
		})
	}
}

// compete has clients contend for keys until stop is called, which waits for them.
// All have used the TTL when it returns, so that they know how long to be on guard.
func compete(t *testing.T, clients []*redlock.Client, keys []*cluster.Promises, ttl time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for i, c := range clients {
		_, _ = c.TryAcquire(ctx, fmt.Sprint("first of ", i), ttl)
		for g := range 6 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				rng := rand.New(rand.NewPCG(uint64(i), uint64(g)))
				for ctx.Err() == nil {
					keys[g%len(keys)].Hold(ctx, c, fmt.Sprintf("%d of client %d", g, i), ttl, rng)
				}
			}()
		}
	}
	stop = func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	return stop
}

// killInTurn kills servers and starts them anew, two at a time one right behind
// the other, and lets every key be won in between: a few times, or until a promise
// is broken.
func killInTurn(t *testing.T, servers []*realredis.Server, clients []*redlock.Client, keys []*cluster.Promises, untilBroken bool) {
	deadline := time.Now().Add(testkit.Patience)
	for round := 0; ; round++ {
		for _, p := range keys {
			before := p.Count()
			testkit.Await(t, "progress on "+p.Key, func() bool { return p.Count() > before })
		}
		broken := slices.ContainsFunc(keys, func(p *cluster.Promises) bool { return p.Broken() != nil })
		if broken || !untilBroken && round == 3 {
			return
		}
		require.True(t, time.Now().Before(deadline), "no promise is broken")
		restartUnder(t, servers, round%3, clients...)
		restartUnder(t, servers, (round+1)%3, clients...)
	}
}
