package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/quorum"
)

// newServed is an engine with its goroutines, on a fleet of servers in this process. It is closed with the test.
func newServed(t *testing.T, nodes int, portable bool) *served {
	s := &served{servers: fakeredis.StartN(t, nodes)}
	s.Engine = New(Config{Clock: clock.New(), MaxWaiting: 1 << 16, Timeout: time.Minute})
	addresses, err := conn.ParseAddresses(fakeredis.Addrs(s.servers))
	require.NoError(t, err)
	fleet, err := conn.New(conn.Config{Addresses: addresses, Portable: portable, OnUp: s.NodeUp, StallTimeout: time.Minute}, s.DriverLock())
	require.NoError(t, err)
	s.Start(voting{fleet})
	fleet.AwaitFirst(nil, nil)
	t.Cleanup(s.close)
	return s
}

type served struct {
	*Engine
	servers []*fakeredis.Server
	once    sync.Once
}

func (s *served) close() { s.once.Do(func() { s.Close(make(chan struct{})) }) }

// TestStress: thousands of goroutines that acquire, extend and release, many of
// which give up at a random moment. Each of them comes back, and in the end no
// node has a key. A wake-up that is lost hangs it.
func TestStress(t *testing.T) {
	for _, portable := range []bool{false, true} {
		t.Run(fmt.Sprintf("portable=%v", portable), func(t *testing.T) {
			e := newServed(t, 3, portable)
			goroutines, rounds := 2000, 6
			if testkit.Race {
				goroutines, rounds = 1000, 3
			}
			seed := rand.Uint64()
			var numbers atomic.Int64
			var won, given atomic.Int64
			var all sync.WaitGroup
			for g := range goroutines {
				all.Add(1)
				go func() {
					defer all.Done()
					rng := rand.New(rand.NewPCG(seed, uint64(g)))
					for range rounds {
						w, err := e.use(rng, int(numbers.Add(1)), fmt.Sprintf("key-%d", rng.IntN(goroutines)))
						if err != nil {
							given.Add(1)
						} else if w {
							won.Add(1)
						}
					}
				}()
			}
			all.Wait()
			e.close()
			for _, server := range e.servers {
				require.Empty(t, server.Keys(), "seed %d: keys are left", seed)
			}
			require.Positive(t, won.Load())
			require.Positive(t, given.Load())
			require.Zero(t, e.queue.depth.Load())
			require.Zero(t, e.queue.size.Load())
			require.Zero(t, e.nodes.unanswered.Inside()+e.ledger.undecided+e.ledger.window.inside)
		})
	}
}

// voting is a fleet whose nodes all have a vote.
type voting struct{ *conn.Fleet }

func (voting) Quarantined() quorum.Set                 { return 0 }
func (voting) QuarantinedFor(time.Duration) quorum.Set { return 0 }
func (voting) NoteTTL(time.Duration)                   {}

// use makes one acquire and the calls that follow it, in contexts that end at a random moment, or never, or have ended.
func (s *served) use(rng *rand.Rand, lock int, key string) (won bool, err error) {
	do := func(kind Kind) (opErr, err error) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		switch rng.IntN(6) {
		case 0:
			cancel()
		case 1, 2:
			go cancel()
		case 3:
			ctx = context.Background()
		}
		c := s.call(kind, key, time.Minute)
		defer c.Free()
		c.Token = tokenOf(lock)
		err = s.do(ctx, c)
		return c.Err, err
	}
	opErr, err := do(Acquire)
	if err != nil || opErr != nil {
		return false, err
	}
	for range rng.IntN(3) {
		if _, err := do(Extend); err != nil {
			break
		}
	}
	_, err = do(Release) // is sent, however it ends
	return true, err
}
