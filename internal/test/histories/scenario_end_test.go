package histories

import (
	"context"
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
