package histories

import (
	"context"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
)

// ends are scenarios of a set of keys in two groups whose client closes: no key stays. The group of
// the first key is well, and has nothing to wait for.
var ends = []scenario{
	{"closed while a set waits for a second group", 6, func(s *stage) {
		for _, graceful := range []bool{false, true} {
			c, other := s.deadGroup((*fakeredis.Server).Hang)
			w := s.call(s.ctx, func(ctx context.Context) (redlock.Lock, error) { return c.TryAcquireAll(ctx, longTTL, "k", other) })
			time.Sleep(promptly)
			require.Equal(s.T, 3, s.Holders("k"))
			s.end(c, graceful)
			<-w.done
			require.Error(s.T, w.err)
			require.Zero(s.T, s.Holders("k"))
			require.NoError(s.T, s.Servers.Heal())
			time.Sleep(promptly)
			s.Servers.Flush()
		}
	}},
	{"closed while a caller with a set is in its hook", 6, func(s *stage) {
		for i := range 40 {
			var blocked sync.WaitGroup
			blocked.Add(1)
			groups := [][]string{s.Nodes[:3], s.Nodes[3:]}
			c := s.Client(func(c *redlock.Config) {
				c.Nodes, c.Groups = nil, groups
				c.Hooks.Attempt = func(redlock.Attempt) {
					blocked.Done()
					time.Sleep(time.Second)
				}
			})
			require.NoError(s.T, c.Ready(s.ctx))
			w := s.call(s.ctx, func(ctx context.Context) (redlock.Lock, error) { // some keys are in each group
				return c.AcquireAll(ctx, longTTL, "a", "b", "c", "d", "e", "f")
			})
			blocked.Wait()
			s.end(c, i%2 == 0)
			for _, n := range s.Servers {
				require.Empty(s.T, n.Keys())
			}
			<-w.done
			require.ErrorIs(s.T, w.err, redlock.ErrClosed)
		}
	}},
}

// end closes a client, and waits for the last messages.
func (s *stage) end(c *redlock.Client, graceful bool) {
	end := c.Close
	if graceful {
		end = func() error { return c.Shutdown(s.ctx) }
	}
	require.NoError(s.T, end())
	time.Sleep(time.Millisecond)
}
