package realredis

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestServersAnswerAndEndWithTheirTest(t *testing.T) {
	var addrs []string
	t.Run("while it runs", func(t *testing.T) {
		for _, s := range StartN(t, 3) {
			assert.Equal(t, "+PONG", ask(t, s, "PING"))
			addrs = append(addrs, s.Addr())
		}
	})
	assert.NotEmpty(t, addrs)
	for _, addr := range addrs {
		_, err := ping(addr)
		assert.Error(t, err)
	}
}

// ask gives a server an order, and returns the first line of its answer.
func ask(t *testing.T, s *Server, order string) string {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr())
	require.NoError(t, err)
	return askOver(t, c, order)
}

// askOver does so over a connection, and closes it.
func askOver(t *testing.T, c net.Conn, order string) string {
	t.Helper()
	defer func() { _ = c.Close() }()
	require.NoError(t, c.SetDeadline(time.Now().Add(startTimeout)))
	_, err := fmt.Fprintf(c, "%s\r\n", order)
	require.NoError(t, err)
	line, err := bufio.NewReader(c).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line)
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
	_, err := ping(addr)
	assert.Error(t, err)
	require.NoError(t, s.Kill(), "twice is fine")

	require.NoError(t, s.Restart())
	assert.Equal(t, addr, s.Addr())
	assert.NotEqual(t, pid, s.PID())
	assert.Equal(t, "+PONG", ask(t, s, "PING"))
	require.NoError(t, s.Stop())
	require.NoError(t, s.Restart(), "a frozen server can be restarted")
	assert.Equal(t, "+PONG", ask(t, s, "PING"))
}

// TestRestartKeepsTheDataOnlyIfAsked, whatever a server was made to save.
func TestRestartKeepsTheDataOnlyIfAsked(t *testing.T) {
	for persistent, want := range map[bool]string{false: ":0", true: ":1"} {
		s := Start(t, Options{Persistent: persistent})
		require.Equal(t, "+OK", ask(t, s, "SET k v"))
		require.Equal(t, "+OK", ask(t, s, "SAVE"))
		require.NoError(t, s.Restart())
		assert.Equal(t, want, ask(t, s, "DBSIZE"))
	}
}

// TestBoot does not wait for a server that loads its data, and what it is given
// is forgotten in the next life.
func TestBoot(t *testing.T) {
	s := Start(t, Options{Persistent: true, Args: []string{"--appendonly", "no", "--rdbcompression", "no", "--loading-process-events-interval-bytes", "1024"}})
	require.Equal(t, "$-1", ask(t, s, `EVAL "for i = 1, 1000 do redis.call('SET', i, string.rep('v', 1024)) end" 0`))
	require.Equal(t, "+OK", ask(t, s, "SAVE"))
	require.NoError(t, s.Boot("--key-load-delay", "20000"))
	assert.Contains(t, ask(t, s, "GET 1"), "-LOADING")
	require.NoError(t, s.Restart())
	assert.Equal(t, ":1000", ask(t, s, "DBSIZE"))
}

// TestPortsAreKept from others while a server has them, also while it is down,
// and not afterwards.
func TestPortsAreKept(t *testing.T) {
	fleet, err := Launch(1)
	skipOrFail(t, err)
	s := fleet.Servers[0]
	require.NoError(t, s.Kill())
	_, err = net.ListenPacket("udp", s.Addr())
	assert.Error(t, err)
	require.NoError(t, fleet.Close())
	claim, err := net.ListenPacket("udp", s.Addr())
	require.NoError(t, err)
	require.NoError(t, claim.Close())
	require.NoError(t, fleet.Close(), "twice is fine")
}

func TestPasswordAndUsers(t *testing.T) {
	s := Start(t, Options{Password: "secret", Users: []string{"joe on >sesame resetkeys ~a +get", "jim on >4711 +@all"}})
	assert.Contains(t, ask(t, s, "ECHO x"), "-NOAUTH")
	for _, credentials := range []string{"secret", "default secret", "joe sesame", "jim 4711"} {
		assert.Equal(t, "+OK", ask(t, s, "AUTH "+credentials))
	}
	assert.Contains(t, ask(t, s, "AUTH joe secret"), "-WRONGPASS")
}

func TestUnixSocket(t *testing.T) {
	s := Start(t, Options{Unix: true})
	c, err := net.Dial("unix", s.Socket())
	require.NoError(t, err)
	assert.Equal(t, "+PONG", askOver(t, c, "PING"))
}

// TestFurtherSettingsWin over those that other options make.
func TestFurtherSettingsWin(t *testing.T) {
	s := Start(t, Options{Args: []string{"--bind", "127.0.0.1", "127.0.0.2"}})
	_, port, err := net.SplitHostPort(s.Addr())
	require.NoError(t, err)
	c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.2", port))
	if err != nil {
		t.Skipf("skipped: no second loopback address: %v", err)
	}
	assert.Equal(t, "+PONG", askOver(t, c, "PING"))
}

func TestEachKindIsWhatItSays(t *testing.T) {
	want := map[Kind]string{Valkey9: `valkey_version:9\.`, Redis8: `redis_version:8\.`, Usual: `redis_version:`}
	EachKind(t, func(t *testing.T, kind Kind) {
		c, err := net.Dial("tcp", Start(t, Options{Kind: kind}).Addr())
		require.NoError(t, err)
		defer func() { _ = c.Close() }()
		_, err = c.Write([]byte("INFO server\r\n"))
		require.NoError(t, err)
		info := make([]byte, 256)
		_, err = io.ReadFull(c, info)
		require.NoError(t, err)
		assert.Regexp(t, want[kind], string(info))
	})
}

func TestLaunchTellsWhyItFailed(t *testing.T) {
	_, err := Launch(1, Options{Command: []string{"/does/not/exist"}})
	assert.ErrorIs(t, err, os.ErrNotExist)

	command, err := Usual.Command()
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
	t.Setenv(EnvValkey9, "")
	for _, require := range []string{"", "1"} {
		t.Setenv(EnvRequire, require)
		r := &recorder{TB: t}
		assert.PanicsWithValue(t, r, func() { Start(r) })
		assert.Equal(t, require == "1", r.failed)
		assert.Equal(t, require != "1", r.skipped)

		r = &recorder{TB: t}
		assert.PanicsWithValue(t, r, func() { Start(r, Options{Kind: Valkey9}) })
		assert.False(t, r.failed, "not every machine has every kind")
		assert.True(t, r.skipped)
	}
}
