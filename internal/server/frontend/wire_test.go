package frontend_test

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/server/frontend"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
	"github.com/redlock-go/redlock/resp"
)

// front is a front end of its own masters.
type front struct {
	*cluster.Cluster
	*frontend.Server
	addr string
}

// start starts a front end for n masters. It ends with the test.
func start(t *testing.T, n int, change ...func(*frontend.Config)) *front {
	t.Helper()
	return startOn(t, cluster.New(t, n), change...)
}

func startOn(t *testing.T, c *cluster.Cluster, change ...func(*frontend.Config)) *front {
	t.Helper()
	cfg := frontend.Config{Client: c.Client, MaxTTL: redlock.MaxTTL}
	for _, f := range change {
		f(&cfg)
	}
	f := &front{Cluster: c, Server: frontend.New(cfg)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f.addr = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- f.Serve(l) }()
	t.Cleanup(func() {
		testkit.Within(t, 2*testkit.Patience, "Stop", func() { f.Stop(t.Context()) })
		require.NoError(t, testkit.Get(t, served))
	})
	return f
}

// withUsers gives a front end the users of a text.
func withUsers(t *testing.T, text string) func(*frontend.Config) {
	t.Helper()
	users, err := frontend.ReadUsers(strings.NewReader(text))
	require.NoError(t, err)
	return func(c *frontend.Config) { c.Users = users }
}

// awaitOpen waits until so many connections are open.
func (f *front) awaitOpen(t *testing.T, n int64) {
	t.Helper()
	_, wire := f.Stats()
	testkit.Await(t, "the ends of sessions", func() bool { return wire.Open.Load() == n })
}

// client is a connection with no more than the frames of Redis.
type client struct {
	t    *testing.T
	conn net.Conn
	d    resp.Decoder
	buf  []byte
}

func (f *front) dial(t *testing.T) *client {
	t.Helper()
	conn, err := net.Dial("tcp", f.addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &client{t: t, conn: conn}
}

// send sends commands, each a line of words. A word "-" is empty.
func (c *client) send(lines ...string) {
	c.t.Helper()
	var out strings.Builder
	for _, line := range lines {
		words := strings.Fields(line)
		for i, word := range words {
			words[i] = strings.TrimPrefix(word, "-")
		}
		out.WriteString(testkit.Encode(words...))
	}
	_, err := io.WriteString(c.conn, out.String())
	require.NoError(c.t, err)
}

// pipeline sends so many commands, each with its number in a format, and returns their replies.
func (c *client) pipeline(n int, format string) (replies []string) {
	c.t.Helper()
	var lines []string
	for i := range n {
		lines = append(lines, fmt.Sprintf(format, i))
	}
	c.send(lines...)
	for range n {
		replies = append(replies, c.receive())
	}
	return replies
}

// call sends a command with blanks in its arguments.
func (c *client) call(args ...string) string {
	c.t.Helper()
	c.sendWords(args)
	return c.receive()
}

// sendWords sends one command.
func (c *client) sendWords(words []string) {
	c.t.Helper()
	_, err := io.WriteString(c.conn, testkit.Encode(words...))
	require.NoError(c.t, err)
}

// receive returns the next reply, as text: +OK, -ERR …, :1, $text, nil, [a b].
func (c *client) receive() string {
	c.t.Helper()
	require.NoError(c.t, c.conn.SetReadDeadline(time.Now().Add(testkit.Patience)))
	for {
		var v resp.Value
		n, err := c.d.Decode(c.buf, &v)
		if err == nil {
			text := show(&v)
			c.buf = c.buf[n:]
			return text
		}
		require.ErrorIs(c.t, err, resp.ErrIncomplete)
		more := make([]byte, 64<<10)
		n, err = c.conn.Read(more)
		if n == 0 {
			return fmt.Sprint("end: ", err)
		}
		c.buf = append(c.buf, more[:n]...)
	}
}

func show(v *resp.Value) string {
	switch {
	case v.Null || v.Kind == resp.Null:
		return "nil"
	case v.Kind == resp.Integer:
		return fmt.Sprint(":", v.Int)
	case v.Kind == resp.Array || v.Kind == resp.Map || v.Kind == resp.Push:
		var all []string
		it := v.Elements()
		for it.Next() {
			all = append(all, show(it.Value()))
		}
		return fmt.Sprint(all)
	}
	return string(rune(v.Kind)) + string(v.Bytes)
}

// ask sends a command and returns its reply.
func (c *client) ask(line string) string {
	c.t.Helper()
	c.send(line)
	return c.receive()
}

// expect runs a conversation of lines "command => reply", with the beginning of each reply. "~60" is a number of 60 or
// a little less, for the seconds left on a busy machine.
func (c *client) expect(conversation string) {
	c.t.Helper()
	for line := range strings.Lines(strings.TrimSpace(conversation)) {
		command, want, found := strings.Cut(line, "=>")
		if !found {
			continue
		}
		got := c.ask(command)
		want = strings.TrimSpace(want)
		fits := strings.HasPrefix(got, want) && (want != "" && want[0] != ':' || got == want)
		if most, isTime := strings.CutPrefix(want, "~"); isTime {
			left, err := strconv.Atoi(strings.TrimPrefix(got, ":"))
			n, _ := strconv.Atoi(most)
			fits = err == nil && left <= n && left > n-10
		}
		require.True(c.t, fits, "%s: got %s, want %s", strings.TrimSpace(command), got, want)
	}
}
