package testkit

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

// TextClient is a test's connection for orders to a server, real or fake; each is answered within
// Patience. It speaks RESP in the plainest way, so no code of the project stands between the test
// and the server.
type TextClient struct {
	Conn net.Conn
	t    testing.TB
	r    *bufio.Reader
}

// DialText connects to a host and port, or to the path of a Unix socket.
func DialText(t testing.TB, addr string) *TextClient {
	t.Helper()
	network := "tcp"
	if strings.HasPrefix(addr, "/") {
		network = "unix"
	}
	nc, err := net.DialTimeout(network, addr, Patience)
	require.NoError(t, err)
	return NewTextClient(t, nc)
}

// NewTextClient takes a connection over and closes it at the end of the test.
func NewTextClient(t testing.TB, nc net.Conn) *TextClient {
	t.Cleanup(func() { _ = nc.Close() })
	return &TextClient{nc, t, bufio.NewReader(nc)}
}

// Encode is one command in RESP.
func Encode(words ...string) string {
	b := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, word := range words {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(word), word)
	}
	return string(b)
}

// Send writes bytes as they are.
func (c *TextClient) Send(raw string) {
	c.t.Helper()
	require.NoError(c.t, c.Conn.SetDeadline(time.Now().Add(Patience)))
	_, err := io.WriteString(c.Conn, raw)
	require.NoError(c.t, err)
}

// Do gives an order, words with spaces between, and returns the reply.
func (c *TextClient) Do(order string) string {
	c.t.Helper()
	return c.DoWords(strings.Fields(order)...)
}

// DoWords gives an order of words with spaces allowed.
func (c *TextClient) DoWords(words ...string) string {
	c.t.Helper()
	c.Send(Encode(words...))
	return c.Receive()
}

// Ask gives an order of words, and returns the reply, or why there is none.
func (c *TextClient) Ask(words ...string) (string, error) {
	_ = c.Conn.SetDeadline(time.Now().Add(Patience)) // an end shows in the write
	if _, err := io.WriteString(c.Conn, Encode(words...)); err != nil {
		return "", err
	}
	return c.read()
}

// Text gives an order and returns the text of the bulk string in answer.
func (c *TextClient) Text(order string) string {
	c.t.Helper()
	text, err := strconv.Unquote(c.Do(order))
	require.NoError(c.t, err, order)
	return text
}

// Must gives orders, each answered with OK.
func (c *TextClient) Must(orders ...string) {
	c.t.Helper()
	for _, order := range orders {
		require.Equal(c.t, "+OK", c.Do(order), order)
	}
}

// Receive returns the next reply in one line, or how the connection ended:
// "closed" or "reset". Lines stay as they are; bulk strings are quoted, and
// aggregates are bracketed after their sign.
func (c *TextClient) Receive() string {
	c.t.Helper()
	_ = c.Conn.SetReadDeadline(time.Now().Add(Patience)) // an end shows in the read
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

// RequireSilence fails the test if anything arrives within a moment.
func (c *TextClient) RequireSilence() {
	c.t.Helper()
	require.NoError(c.t, c.Conn.SetReadDeadline(time.Now().Add(30*time.Millisecond)))
	_, err := c.r.ReadByte()
	var timeout net.Error
	require.ErrorAs(c.t, err, &timeout)
	require.True(c.t, timeout.Timeout())
}

func (c *TextClient) read() (string, error) {
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
	case '*', '~', '%', '>':
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
