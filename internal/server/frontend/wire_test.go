package frontend_test

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/server/frontend"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
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

// client is a connection.
type client struct {
	*testkit.TextClient
	t *testing.T
}

func (f *front) dial(t *testing.T) *client {
	t.Helper()
	return &client{testkit.DialText(t, f.addr), t}
}

// send sends commands, each a line of words.
func (c *client) send(lines ...string) {
	c.t.Helper()
	var out strings.Builder
	for _, line := range lines {
		out.WriteString(testkit.Encode(strings.Fields(line)...))
	}
	c.Send(out.String())
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
		replies = append(replies, c.Receive())
	}
	return replies
}

// expect runs a conversation of lines "command => reply", with the beginning of each reply. A word "-" is empty. "~60" is
// a number of 60 or a little less, for the seconds left on a busy machine.
func (c *client) expect(conversation string) {
	c.t.Helper()
	for line := range strings.Lines(strings.TrimSpace(conversation)) {
		command, want, found := strings.Cut(line, "=>")
		if !found {
			continue
		}
		words := strings.Fields(command)
		for i, word := range words {
			if word == "-" {
				words[i] = ""
			}
		}
		got := c.DoWords(words...)
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
