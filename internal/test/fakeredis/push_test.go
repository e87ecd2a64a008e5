package fakeredis

import (
	"strings"
	"sync/atomic"
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
			s.Set("k", "v", 0)
			require.Equal(t, pushOfK, c.Receive())
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

// A push is late where the line is long.
func TestDelayedPushes(t *testing.T) {
	s := StartN(t, 1)[0]
	c := tracker(t, s)
	register(t, c, "k")
	s.Delay(50 * time.Millisecond)
	start := time.Now()
	s.Set("k", "v", 0)
	require.Equal(t, pushOfK, c.Receive())
	require.GreaterOrEqual(t, time.Since(start), 50*time.Millisecond)
}

// Expired keys are looked for by the given clock.
func TestCleaning(t *testing.T) {
	var now atomic.Int64
	now.Store(1_000_000)
	s := StartN(t, 1, Options{Now: func() time.Time { return time.UnixMilli(now.Load()) }})[0]
	c := tracker(t, s)
	s.Set("k", "v", 10*time.Millisecond)
	c.Must("CLIENT CACHING YES")
	require.Equal(t, `"v"`, c.Do("GET k"))
	c.RequireSilence()
	now.Add(11)
	require.Equal(t, pushOfK, c.Receive())
}

func TestRegistrationsEnd(t *testing.T) {
	s := StartN(t, 1)[0]
	a, b := tracker(t, s), tracker(t, s)
	register(t, a, "k")
	register(t, b, "k")
	register(t, b, "j")
	assert.Equal(t, 2, s.TrackedKeys())
	require.Equal(t, "+OK", b.Do("QUIT"))
	testkit.Await(t, "the end of the connection", func() bool { return s.TrackedKeys() == 1 })
	s.Flush()
	assert.Zero(t, s.TrackedKeys())
	assert.Equal(t, `>["invalidate" _]`, a.Receive())
	register(t, a, "k")
	require.NoError(t, s.Restart(true))
	testkit.Await(t, "the end of the connection", func() bool { return s.TrackedKeys() == 0 })
}
