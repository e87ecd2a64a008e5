package e2e

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/fakeredis"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// guarded is what a lock protects. Its counter is read and written in two
// steps, so that two holders at once lose a count. The steps are atomic by
// themselves because the race detector does not see that a lock orders them:
// what one client learns from a node about another goes through raw sockets.
type guarded struct {
	key     string
	holder  atomic.Int64
	counter atomic.Int64
	truth   atomic.Int64
}

func (g *guarded) use(t *testing.T, me int64) {
	if other := g.holder.Swap(me); other != 0 {
		t.Errorf("%s: %d comes in while %d holds it", g.key, me, other)
	}
	n := g.counter.Load()
	runtime.Gosched()
	g.counter.Store(n + 1)
	if other := g.holder.Swap(0); other != me {
		t.Errorf("%s: %d goes and finds %d", g.key, me, other)
	}
	g.truth.Add(1)
}

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
		keys := []*guarded{{key: "a"}, {key: "b"}, {key: "c"}}
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
						contend(ctx, t, client, keys[rng.IntN(len(keys))], me, rng)
					}
				}()
			}
		}
		torment(t, servers, keys, rand.New(rand.NewPCG(seed, 0)), 400*time.Millisecond)
		stop()
		testkit.Join(t, &wg)
		for _, g := range keys {
			require.Equal(t, g.truth.Load(), g.counter.Load(), "counts were lost")
		}
	})
}

// contend takes a key once, in one of several ways.
func contend(ctx context.Context, t *testing.T, client *redlock.Client, g *guarded, me int64, rng *rand.Rand) {
	acquire := client.Acquire
	if rng.IntN(2) == 0 {
		acquire = client.TryAcquire
	}
	attempt, cancel := context.WithTimeout(ctx, time.Duration(1+rng.IntN(50))*time.Millisecond)
	defer cancel()
	l, err := acquire(attempt, g.key, ttl)
	if err != nil {
		if !testkit.IsAny(err, redlock.ErrTaken, redlock.ErrNoQuorum, context.Canceled, context.DeadlineExceeded) {
			t.Errorf("acquire: %v", err)
		}
		return
	}
	g.use(t, me)
	if rng.IntN(4) == 0 && l.Extend(attempt, ttl) == nil {
		// What happens between a good extension and the release is guarded too.
		g.use(t, me)
	}
	// Until it is known to be released; the others wait meanwhile.
	for errors.Is(l.Release(context.Background()), redlock.ErrNoQuorum) {
		runtime.Gosched()
	}
}

// torment does one thing after another to the nodes, and lets every key make
// progress in between. Only two of five lose connections: a key may stay on a node
// until the next one, and progress needs a quorum.
func torment(t *testing.T, servers []*fakeredis.Server, keys []*guarded, rng *rand.Rand, long time.Duration) {
	gentle := []func(*fakeredis.Server){
		(*fakeredis.Server).Mute,
		func(s *fakeredis.Server) { s.Delay(5 * time.Millisecond) },
		(*fakeredis.Server).FlushScripts,
		func(s *fakeredis.Server) { s.ErrorReply("SET", "BUSY Redis is busy running a script", 20) },
	}
	rough := append([]func(*fakeredis.Server){
		(*fakeredis.Server).Hang,
		(*fakeredis.Server).HangDeaf,
		(*fakeredis.Server).ResetConns,
		(*fakeredis.Server).Partition,
		(*fakeredis.Server).Down,
		func(s *fakeredis.Server) { s.ResetMidReply("SET", 3) },
		func(s *fakeredis.Server) { s.DropConn("EVALSHA", 3) },
	}, gentle...)
	for start := time.Now(); time.Since(start) < long; {
		for range 1 + rng.IntN(3) {
			if i := rng.IntN(5); i < 2 {
				rough[rng.IntN(len(rough))](servers[i])
			} else {
				gentle[rng.IntN(len(gentle))](servers[i])
			}
		}
		until := time.Now().Add(time.Duration(rng.IntN(30)) * time.Millisecond)
		testkit.Await(t, "the fault has lasted", func() bool { return time.Now().After(until) })
		for _, s := range servers {
			require.NoError(t, s.Heal())
		}
		for _, g := range keys {
			before := g.truth.Load()
			testkit.Await(t, "progress on "+g.key, func() bool { return g.truth.Load() > before })
		}
	}
}
