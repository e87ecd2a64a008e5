package e2e

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/fakeredis"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// TestMutualExclusion: two clients with 32 goroutines each fight for three
// keys, while nodes hang, are late, go deaf, lose connections and die and come
// back with their keys. At no time are there two holders.
func TestMutualExclusion(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if testing.Short() {
		seed = 1
	}
	t.Logf("seed %d", seed)
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		servers := cluster.Start(t, 5)
		keys := []*cluster.Section{{Key: "a"}, {Key: "b"}, {Key: "c"}}
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for c := range 2 {
			client := cluster.Connect(t, fakeredis.Addrs(servers), cluster.Portable(portable), cluster.NodeTimeout(20*time.Millisecond),
				func(c *redlock.Config) { c.StallTimeout = 3 * time.Second })
			for g := range 32 {
				wg.Add(1)
				go func() {
					defer wg.Done()
					me := int64(1 + 32*c + g)
					rng := rand.New(rand.NewPCG(seed, uint64(me)))
					for ctx.Err() == nil {
						cluster.Contend(ctx, t, client, keys[rng.IntN(len(keys))], me, rng)
					}
				}()
			}
		}
		cluster.InjectFaults(t, servers, keys, rand.New(rand.NewPCG(seed, 0)), 400*time.Millisecond)
		stop()
		testkit.Join(t, &wg)
		for _, g := range keys {
			require.Equal(t, g.Turns.Load(), g.Counter.Load(), "counts were lost")
		}
	})
}
