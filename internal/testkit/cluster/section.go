package cluster

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/fakeredis"
	"github.com/redlock-go/redlock/internal/testkit"
)

// Section is the resource that a lock protects. Its counter is read and written in two
// steps, so that two holders at once lose a count. The steps are atomic by
// themselves because the race detector does not see that a lock orders them:
// what one client learns from a node about another goes through raw sockets.
type Section struct {
	Key     string
	holder  atomic.Int64
	Counter atomic.Int64 // what holders have written
	Turns   atomic.Int64 // how many holders there were
}

// Use is the work of holder me.
func (g *Section) Use(t *testing.T, me int64) {
	if other := g.holder.Swap(me); other != 0 {
		t.Errorf("%s: %d comes in while %d holds it", g.Key, me, other)
	}
	n := g.Counter.Load()
	runtime.Gosched()
	g.Counter.Store(n + 1)
	if other := g.holder.Swap(0); other != me {
		t.Errorf("%s: %d goes and finds %d", g.Key, me, other)
	}
	g.Turns.Add(1)
}

// Contend takes a key once, in one of several ways.
func Contend(ctx context.Context, t *testing.T, client *redlock.Client, g *Section, me int64, rng *rand.Rand) {
	acquire := client.Acquire
	if rng.IntN(2) == 0 {
		acquire = client.TryAcquire
	}
	attempt, cancel := context.WithTimeout(ctx, time.Duration(1+rng.IntN(50))*time.Millisecond)
	defer cancel()
	l, err := acquire(attempt, g.Key, TTL)
	if err != nil {
		if !testkit.IsAny(err, redlock.ErrTaken, redlock.ErrNoQuorum, context.Canceled, context.DeadlineExceeded) {
			t.Errorf("acquire: %v", err)
		}
		return
	}
	g.Use(t, me)
	if rng.IntN(4) == 0 && l.Extend(attempt, TTL) == nil {
		// The time between a good extension and the release is guarded too.
		g.Use(t, me)
	}
	// Until it is known to be released; the others wait meanwhile.
	for errors.Is(l.Release(context.Background()), redlock.ErrNoQuorum) {
		runtime.Gosched()
	}
}

// InjectFaults has one fault after another in the nodes, and lets every key make
// progress in between. Only two of five lose connections: a key may stay on a node
// until the next one, and progress needs a quorum.
func InjectFaults(t *testing.T, servers []*fakeredis.Server, keys []*Section, rng *rand.Rand, long time.Duration) {
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
			before := g.Turns.Load()
			testkit.Await(t, "progress on "+g.Key, func() bool { return g.Turns.Load() > before })
		}
	}
}
