package fakeredis

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit"
)

const (
	pushOfK = `>["invalidate" *["k"]]`
	hello   = "%[" // the answer to HELLO begins with it
)

func tracker(t *testing.T, s *Server) *testkit.TextClient {
	t.Helper()
	c := testkit.DialText(t, s.Addr())
	require.True(t, strings.HasPrefix(c.Do("HELLO 3"), hello))
	c.Must("CLIENT TRACKING ON OPTIN NOLOOP")
	return c
}

func register(t *testing.T, c *testkit.TextClient, key string) {
	t.Helper()
	c.Must("CLIENT CACHING YES")
	require.Equal(t, "_", c.Do("GET "+key))
}

func TestFaultsOfPushes(t *testing.T) {
	for name, test := range map[string]struct {
		fault PushFault
		want  int // pushes
	}{
		"none":    {PushFault{}, 1},
		"dropped": {PushFault{Drop: 1, Double: 1}, 0},
		"doubled": {PushFault{Double: 1}, 2},
		"delayed": {PushFault{Double: 1, Delay: 20 * time.Millisecond}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := StartN(t, 1)[0]
			c := tracker(t, s)
			s.FaultPushes(test.fault)
			register(t, c, "k")
			s.Set("k", "v", 0)
			for range test.want {
				require.Equal(t, pushOfK, c.Receive())
			}
			require.Equal(t, "+PONG", c.Do("PING"))
			require.NoError(t, s.Heal())
			s.Del("k")
			register(t, c, "k")
			s.Delay(50 * time.Millisecond) // a push is late where the line is long
			start := time.Now()
			s.Set("k", "v", 0)
			require.Equal(t, pushOfK, c.Receive())
			require.GreaterOrEqual(t, time.Since(start), 50*time.Millisecond)
			require.NoError(t, s.Heal())
			s.FaultPushes(PushFault{Delay: time.Hour}) // it holds up no later answer, nor the end of the server
			s.Del("k")
			register(t, c, "k")
			s.Set("k", "v", 0)
			require.Equal(t, "+PONG", c.Do("PING"))
			require.NoError(t, s.Close())
		})
	}
}

func TestForgedPushes(t *testing.T) {
	s := StartN(t, 1)[0]
	c, old := tracker(t, s), testkit.DialText(t, s.Addr())
	s.Forge(Invalidation("k") + Flushed)
	assert.Equal(t, pushOfK, c.Receive())
	assert.Equal(t, `>["invalidate" _]`, c.Receive())
	s.Forge("?")
	assert.Equal(t, "?+PONG", c.Do("PING"))
	assert.Equal(t, "+PONG", old.Do("PING"), "RESP2 has no pushes")
}
