package fakeredis

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// client speaks RESP in the plainest way there is, so that nothing of our own
// stands between a test and a server.
type client struct {
	t  testing.TB
	nc net.Conn
	r  *bufio.Reader
}

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

func dial(t testing.TB, network, addr string) *client {
	t.Helper()
	nc, err := net.DialTimeout(network, addr, patience)
	require.NoError(t, err)
	return newClient(t, nc)
}

func newClient(t testing.TB, nc net.Conn) *client {
	t.Cleanup(func() { _ = nc.Close() })
	require.NoError(t, nc.SetReadDeadline(time.Now().Add(patience)))
	return &client{t: t, nc: nc, r: bufio.NewReader(nc)}
}

// encode is one command in RESP.
func encode(words ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
	}
	return b.String()
}

func (c *client) send(raw string) {
	c.t.Helper()
	_, err := io.WriteString(c.nc, raw)
	require.NoError(c.t, err)
}

// do sends a command given in one line and returns the reply.
func (c *client) do(line string) string {
	c.t.Helper()
	c.send(encode(strings.Fields(line)...))
	return c.receive()
}

// receive returns the next reply in one line, or what became of the
// connection: "closed" or "reset".
func (c *client) receive() string {
	c.t.Helper()
	reply, err := c.read()
	switch {
	case err == nil:
		return reply
	case err == io.EOF:
		return "closed"
	case strings.Contains(err.Error(), "reset by peer"):
		return "reset"
	}
	require.NoError(c.t, err)
	return ""
}

// silent asserts that nothing arrives for a moment.
func (c *client) silent() {
	c.t.Helper()
	require.NoError(c.t, c.nc.SetReadDeadline(time.Now().Add(30*time.Millisecond)))
	_, err := c.r.ReadByte()
	var timeout net.Error
	require.ErrorAs(c.t, err, &timeout)
	require.True(c.t, timeout.Timeout())
	require.NoError(c.t, c.nc.SetReadDeadline(time.Now().Add(patience)))
}

// read parses one reply. Lines stay as they are; bulk strings are quoted, and
// aggregates are bracketed behind their sign.
func (c *client) read() (string, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		if err == io.EOF && line != "" {
			err = io.ErrUnexpectedEOF
		}
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return "", fmt.Errorf("empty line")
	}
	n, _ := strconv.Atoi(line[1:])
	switch line[0] {
	case '$', '=':
		if n < 0 {
			return "nil", nil
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(c.r, b); err != nil {
			return "", err
		}
		return strconv.Quote(string(b[:n])), nil
	case '*', '~', '%':
		if n < 0 {
			return "nil array", nil
		}
		if line[0] == '%' {
			n *= 2
		}
		parts := make([]string, n)
		for i := range parts {
			if parts[i], err = c.read(); err != nil {
				return "", err
			}
		}
		return line[:1] + "[" + strings.Join(parts, " ") + "]", nil
	}
	return line, nil
}
