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
	"github.com/redlock-go/redlock/internal/client/fleet"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// newServed is an engine with its goroutines, on a fleet of servers in this process. It is closed with the test.
func newServed(t *testing.T, nodes int, portable bool) *served {
	s := &served{servers: fakeredis.StartN(t, nodes)}
	s.Engine = New(Config{Clock: clock.New(), MaxWaiting: 1 << 16, Timeout: time.Minute})
	addresses, err := conn.ParseAddresses(fakeredis.Addrs(s.servers))
	require.NoError(t, err)
	fleet, err := fleet.New(fleet.Config{Addresses: addresses, Portable: portable, OnUp: s.NodeUp, StallTimeout: time.Minute}, s.DriverLock())
	require.NoError(t, err)
	s.Start(fleet)
	fleet.AwaitFirst(nil, nil)
	t.Cleanup(s.close)
	return s
}

type served struct {
	*Engine
	servers []*fakeredis.Server
	once    sync.Once
}

// close waits for all that is under way.
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
						s := user{e.Engine, rng, int(numbers.Add(1)), fmt.Sprintf("key-%d", rng.IntN(goroutines))}
						w, err := s.run()
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
			require.Zero(t, e.nodes.unanswered.Inside()+e.rounds.undecided+e.rounds.window.inside)
		})
	}
}

// user makes one acquire and the calls that follow it.
type user struct {
	engine *Engine
	*rand.Rand
	lock int
	key  string
}

// context is one that ends at a random moment, or never, or has ended.
func (s *user) context() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	switch s.IntN(6) {
	case 0:
		cancel()
	case 1, 2:
		go cancel()
	case 3:
		return context.Background(), cancel
	}
	return ctx, cancel
}

func (s *user) do(kind Kind) (opErr, err error) {
	ctx, cancel := s.context()
	defer cancel()
	c := s.engine.call(kind, s.key, time.Minute)
	defer c.Free()
	c.Token = tokenOf(s.lock)
	err = s.engine.do(ctx, c)
	return c.Err, err
}

func (s *user) run() (won bool, err error) {
	opErr, err := s.do(Acquire)
	if err != nil || opErr != nil {
		return false, err
	}
	for range s.IntN(3) {
		if _, err := s.do(Extend); err != nil {
			break
		}
	}
	_, err = s.do(Release) // is sent, however it ends
	return true, err
}
