package realredis

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestServersAnswerAndEndWithTheirTest(t *testing.T) {
	var addrs []string
	t.Run("while it runs", func(t *testing.T) {
		for _, s := range StartN(t, 3) {
			assert.NoError(t, ping(s.Addr()))
			addrs = append(addrs, s.Addr())
		}
	})
	assert.NotEmpty(t, addrs)
	for _, addr := range addrs {
		assert.Error(t, ping(addr))
	}
}

func TestStopFreezesUntilCont(t *testing.T) {
	s := Start(t)
	require.NoError(t, s.Stop())
	c, err := net.Dial("tcp", s.Addr())
	require.NoError(t, err, "the kernel still accepts")
	defer func() { _ = c.Close() }()
	_, err = c.Write([]byte("PING\r\n"))
	require.NoError(t, err)

	require.NoError(t, c.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err = c.Read(make([]byte, 16))
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded)

	require.NoError(t, s.Cont())
	require.NoError(t, c.SetReadDeadline(time.Now().Add(startTimeout)))
	reply := make([]byte, 16)
	n, err := c.Read(reply)
	require.NoError(t, err)
	assert.Equal(t, "+PONG\r\n", string(reply[:n]))
}

func TestRestartKeepsThePort(t *testing.T) {
	s := Start(t)
	addr, pid := s.Addr(), s.PID()
	require.NoError(t, s.Kill())
	assert.Error(t, ping(addr))
	require.NoError(t, s.Kill(), "twice is fine")

	require.NoError(t, s.Restart())
	assert.Equal(t, addr, s.Addr())
	assert.NotEqual(t, pid, s.PID())
	assert.NoError(t, ping(addr))
	require.NoError(t, s.Stop())
	require.NoError(t, s.Restart(), "a frozen server can be restarted")
	assert.NoError(t, ping(addr))
}

func TestPasswordIsAskedFor(t *testing.T) {
	s := Start(t, Options{Password: "secret"})
	c, err := net.Dial("tcp", s.Addr())
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	_, err = c.Write([]byte("ECHO x\r\n"))
	require.NoError(t, err)
	reply := make([]byte, 64)
	n, err := c.Read(reply)
	require.NoError(t, err)
	assert.Contains(t, string(reply[:n]), "-NOAUTH")
}

func TestLaunchTellsWhyItFailed(t *testing.T) {
	_, err := Launch(1, Options{Command: []string{"/does/not/exist"}})
	assert.ErrorIs(t, err, os.ErrNotExist)

	command, err := Command()
	if errors.Is(err, ErrNoServer) {
		t.Skip(err)
	}
	_, err = Launch(1, Options{Command: command, Args: []string{"--no-such-setting", "1"}})
	assert.ErrorContains(t, err, "no-such-setting")
}

// recorder stands for a test in which Start finds no server.
type recorder struct {
	testing.TB
	skipped, failed bool
}

func (r *recorder) Skipf(string, ...any)  { r.skipped = true; panic(r) }
func (r *recorder) Fatalf(string, ...any) { r.failed = true; panic(r) }

func TestWithoutServersTestsAreSkippedOrFail(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv(EnvServer, "")
	for _, require := range []string{"", "1"} {
		t.Setenv(EnvRequire, require)
		r := &recorder{TB: t}
		assert.PanicsWithValue(t, r, func() { Start(r) })
		assert.Equal(t, require == "1", r.failed)
		assert.Equal(t, require != "1", r.skipped)
	}
}
