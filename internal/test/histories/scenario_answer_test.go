package histories

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// outages are ways for a node to grant nothing.
var outages = map[string]func(*fakeredis.Server){
	"stopped": (*fakeredis.Server).Down, "hanging": (*fakeredis.Server).Hang, "refusing": func(n *fakeredis.Server) { n.Deny("SET") },
}

// comeAndGo has 30 callers, who give up soon and come again, want a lock that was free for a second, from all nodes
// that fail now.
func (s *stage) comeAndGo(name string, fail func(*fakeredis.Server)) {
	calls := 300
	if testkit.Long() {
		calls = 10_000
	}
	c := s.Client(func(c *redlock.Config) { c.NodeTimeout, c.StallTimeout = time.Second, time.Hour })
	s.inTurn(soon, s.begin(s.ctx, c, name, longTTL), s.begin(s.ctx, c, name, longTTL)) // so its line has heard of a holder
	s.Servers.Each(fail)
	time.Sleep(1050 * time.Millisecond)
	var all sync.WaitGroup
	var begun, taken, heard atomic.Int32
	for p := range 30 {
		random := rand.New(rand.NewPCG(1, uint64(p)))
		all.Go(func() {
			for begun.Add(1) <= int32(calls) {
				err := s.within(30*time.Millisecond+time.Duration(random.Int64N(int64(970*time.Millisecond))), c, name)
				switch {
				case errors.Is(err, redlock.ErrTaken):
					taken.Add(1)
				case errors.Is(err, redlock.ErrNoQuorum):
					heard.Add(1)
				}
				require.Error(s.T, err)
			}
		})
	}
	all.Wait()
	s.T.Logf("%s: of %d calls %d hear of a holder, %d that there is no quorum", name, calls, taken.Load(), heard.Load())
	require.Zero(s.T, taken.Load(), "%s: hear of a holder", name)
	if name != "hanging" { // there no attempt ends before its caller
		require.Greater(s.T, heard.Load(), int32(calls*9/10), "%s: hear that there is no quorum", name)
	}
	s.heals(c)
}

func (s *stage) heals(c *redlock.Client) {
	s.Servers.Each(func(n *fakeredis.Server) {
		require.NoError(s.T, n.Heal())
		n.Allow("SET")
	})
	require.NoError(s.T, c.Ready(s.ctx))
}

// answers are scenarios of what a caller hears: a fact that was seen, and no belief.
var answers = []scenario{
	{"an outage beside callers who come and go", 3, func(s *stage) {
		for name, fail := range outages {
			s.comeAndGo(name, fail)
		}
	}},
	// Nodes have all of NodeTimeout to answer, also where that is longer than the default of StallTimeout.
	{"nodes slower than a second", 3, func(s *stage) {
		c := s.Client(func(c *redlock.Config) { c.NodeTimeout, c.StallTimeout = 3*time.Second, 0 })
		require.NoError(s.T, c.Ready(s.ctx))
		s.Servers.Delay(1500 * time.Millisecond)
		s.release(s.take(c, "k", longTTL))
		for _, n := range c.Stats().Nodes {
			require.EqualValues(s.T, 1, n.Connects, n.Addr)
		}
	}},
	// A caller who gives up in its own attempt hears of the one before, by another.
	{"cut off in an attempt", 3, func(s *stage) {
		c := s.Client(func(c *redlock.Config) { c.NodeTimeout, c.StallTimeout = time.Second, time.Minute })
		require.NoError(s.T, c.Ready(s.ctx))
		s.Servers.Hang()
		waits := func(d time.Duration) *waiting {
			ctx, cancel := context.WithTimeout(s.ctx, d)
			context.AfterFunc(s.ctx, cancel)
			return s.begin(ctx, c, "k", longTTL)
		}
		first := waits(2500 * time.Millisecond)
		time.Sleep(1200 * time.Millisecond)
		second := waits(1800 * time.Millisecond)
		<-first.done
		<-second.done
		var gaveUp *redlock.AcquireError
		require.ErrorAs(s.T, second.err, &gaveUp)
		require.Equal(s.T, 1, gaveUp.Attempts)
		require.ErrorIs(s.T, gaveUp.Last, redlock.ErrNoQuorum, "%v", second.err)
	}},
	// Of many lines each asks every few seconds. A caller who gives up at once hears of the holder that was met in the second
	// before, and of none met earlier.
	{"a denial of long ago", 3, func(s *stage) {
		const lines = 600
		c, other := s.Client(), s.Client()
		for i := range lines {
			s.take(other, fmt.Sprint(i), longTTL)
			s.begin(s.ctx, c, fmt.Sprint(i), longTTL)
		}
		time.Sleep(5 * time.Second)
		heard := map[error]int{}
		for i := range lines {
			var gaveUp *redlock.AcquireError
			require.ErrorAs(s.T, s.within(time.Millisecond, c, fmt.Sprint(i)), &gaveUp)
			heard[gaveUp.Last]++
		}
		require.Greater(s.T, heard[redlock.ErrTaken], lines/6, "%v", heard)
		require.Greater(s.T, heard[nil], lines/6, "%v", heard)
	}},
	// A set that fails for another of its keys says nothing about the first.
	{"a set beside a line", 6, func(s *stage) {
		c, other := s.deadGroup((*fakeredis.Server).Down)
		s.Servers[:3].Take("k")
		go func() { _, _ = c.AcquireAll(s.ctx, longTTL, "k", other) }()
		time.Sleep(promptly)
		for range 5 {
			go func() {
				time.Sleep(100 * time.Millisecond)
				_, _ = c.TryAcquire(s.ctx, other, longTTL) // so the set learns that there is no quorum, while others wait
			}()
			require.ErrorIs(s.T, s.within(300*time.Millisecond, c, "k"), redlock.ErrTaken)
		}
	}},
	// A call without a wait costs nothing while a recent vote speaks for it, and one attempt else.
	{"tried beside a line", 3, func(s *stage) {
		held, c := s.take(s.Client(), "k", longTTL), s.Client()
		attempts := func() int64 { return s.Servers[0].Count("SET") }
		before := attempts()
		for range 3 {
			_, err := c.TryAcquire(s.ctx, "k", longTTL)
			require.ErrorIs(s.T, err, redlock.ErrTaken)
		}
		time.Sleep(promptly)
		require.Equal(s.T, before+3, attempts())
		w := s.wait(c, "k", longTTL)
		before = attempts()
		for range 100 {
			_, err := c.TryAcquire(s.ctx, "k", longTTL)
			require.ErrorIs(s.T, err, redlock.ErrTaken)
		}
		time.Sleep(promptly)
		require.Equal(s.T, before, attempts())
		s.release(held)
		s.granted(w)
		err := s.within(promptly, c, "k")
		require.ErrorIs(s.T, err, redlock.ErrTaken, "a caller of this process has it")
		require.NotContains(s.T, err.Error(), "0 attempts")
	}},
}
