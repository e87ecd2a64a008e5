package histories

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
)

// answers are scenarios of what a caller hears: a fact that was seen, and no belief.
var answers = []scenario{
	// A lock that no quorum can grant has no holder, and no caller hears of one.
	{"an outage beside a line", 3, func(s *stage) {
		for name, fail := range map[string]func(*fakeredis.Server){
			"stopped": (*fakeredis.Server).Down, "hanging": (*fakeredis.Server).Hang, "refusing": func(n *fakeredis.Server) { n.Deny("SET") },
		} {
			for _, held := range []bool{false, true} {
				key, c := fmt.Sprint(name, held), s.Client()
				if held { // the line's first attempts are denied
					s.Servers[0].Set(key, "another's", 100*time.Millisecond)
					s.Servers[1].Set(key, "another's", 100*time.Millisecond)
				}
				var all sync.WaitGroup
				var taken, others atomic.Int32
				hears := func(err error) {
					require.Error(s.T, err)
					if errors.Is(err, redlock.ErrTaken) {
						taken.Add(1)
					} else if errors.Is(err, redlock.ErrNoQuorum) {
						others.Add(1)
					}
				}
				acquire := func() {
					ctx, cancel := context.WithTimeout(s.ctx, 3*time.Second)
					defer cancel()
					_, err := c.Acquire(ctx, key, longTTL)
					hears(err)
				}
				if held {
					all.Go(acquire)
					time.Sleep(promptly)
				}
				fail(s.Servers[0])
				fail(s.Servers[1])
				for range 20 {
					all.Go(acquire)
				}
				time.Sleep(2 * time.Second)
				for range 20 {
					_, err := c.TryAcquire(s.ctx, key, longTTL)
					hears(err)
				}
				all.Wait()
				require.Zero(s.T, taken.Load(), "%s: hear of a holder", key)
				require.GreaterOrEqual(s.T, others.Load(), int32(40), "%s: hear that there is no quorum", key)
				for _, n := range s.Servers[:2] {
					require.NoError(s.T, n.Heal())
					n.Allow("SET")
				}
				require.NoError(s.T, c.Ready(s.ctx))
			}
		}
	}},
	// A set that fails for another of its keys says nothing about the first.
	{"a set beside a line", 6, func(s *stage) {
		c, other := s.deadGroup((*fakeredis.Server).Down)
		s.Servers[:3].Each(func(node *fakeredis.Server) { node.Set("k", "another's", 0) })
		go func() { _, _ = c.AcquireAll(s.ctx, longTTL, "k", other) }()
		time.Sleep(promptly)
		for range 5 {
			go func() {
				time.Sleep(100 * time.Millisecond)
				_, _ = c.TryAcquire(s.ctx, other, longTTL) // so the set learns that there is no quorum, while others wait
			}()
			ctx, cancel := context.WithTimeout(s.ctx, 300*time.Millisecond)
			_, err := c.Acquire(ctx, "k", longTTL)
			cancel()
			require.ErrorIs(s.T, err, redlock.ErrTaken)
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
		ctx, cancel := context.WithTimeout(s.ctx, promptly)
		defer cancel()
		_, err := c.Acquire(ctx, "k", longTTL)
		require.ErrorIs(s.T, err, redlock.ErrTaken, "a caller of this process has it")
		require.NotContains(s.T, err.Error(), "0 attempts")
	}},
}
