package realredis

import (
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/testkit"
)

// TestServersEndWithTheirTest, or machines fill up with them.
func TestServersEndWithTheirTest(t *testing.T) {
	var addr string
	t.Run("while it runs", func(t *testing.T) {
		s := Start(t)
		addr = s.Addr()
		require.Equal(t, "+PONG", testkit.DialText(t, addr).Do("PING"))
	})
	if addr == "" {
		t.Skip("skipped: no server")
	}
	_, err := net.Dial("tcp", addr)
	assert.Error(t, err)
}

// TestRestartKeepsThePort, and the data only if asked to.
func TestRestartKeepsThePort(t *testing.T) {
	for persistent, want := range map[bool]string{false: ":0", true: ":1"} {
		s := Start(t, Options{Persistent: persistent})
		c := testkit.DialText(t, s.Addr())
		c.Must("SET k v", "SAVE")
		addr, pid := s.Addr(), s.PID()
		require.NoError(t, s.Kill())
		require.Equal(t, "closed", c.Receive())
		require.NoError(t, s.Restart())
		assert.Equal(t, addr, s.Addr())
		assert.NotEqual(t, pid, s.PID())
		assert.Equal(t, want, testkit.DialText(t, addr).Do("DBSIZE"))
	}
}

func TestStopFreezesUntilCont(t *testing.T) {
	s := Start(t)
	c := testkit.DialText(t, s.Addr())
	require.NoError(t, s.Stop())
	c.Send(testkit.Encode("PING"))
	c.RequireSilence()
	require.NoError(t, s.Cont())
	assert.Equal(t, "+PONG", c.Receive())
}

func TestEachKindIsWhatItSays(t *testing.T) {
	want := map[Kind]string{Valkey9: `valkey_version:9\.`, Redis8: `redis_version:8\.`, Usual: `redis_version:`}
	EachKind(t, func(t *testing.T, kind Kind) {
		assert.Regexp(t, want[kind], testkit.DialText(t, Start(t, Options{Kind: kind}).Addr()).Text("INFO server"))
	})
}

func TestLaunchReportsWhyItFailed(t *testing.T) {
	_, err := Launch(1, Options{Command: []string{"/does/not/exist"}})
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// skippedTest stands for a test in which Start finds no server.
type skippedTest struct {
	testing.TB
	skipped, failed bool
}

func (r *skippedTest) Skipf(string, ...any)  { r.skipped = true; panic(r) }
func (r *skippedTest) Fatalf(string, ...any) { r.failed = true; panic(r) }

// TestWithoutServers: a test is skipped, or fails where servers are required.
func TestWithoutServers(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv(EnvServer, "")
	for _, require := range []string{"", "1"} {
		t.Setenv(EnvRequire, require)
		r := &skippedTest{TB: t}
		assert.PanicsWithValue(t, r, func() { Start(r) })
		assert.Equal(t, require == "1", r.failed)
		assert.Equal(t, require != "1", r.skipped)
	}
}
