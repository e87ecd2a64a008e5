package served

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Client is a connection to a server that speaks Redis, for one command at a time.
type Client struct {
	conn net.Conn
	in   *bufio.Reader
}

// patience bounds a command.
const patience = 20 * time.Second

// Dial connects a client.
func Dial(addr string) (*Client, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return NewClient(conn), nil
}

// NewClient returns the client of a connection.
func NewClient(conn net.Conn) *Client { return &Client{conn, bufio.NewReader(conn)} }

// Close ends the connection.
func (c *Client) Close() { _ = c.conn.Close() }

// Do sends a command, and returns its reply: +status, -error, :integer, $bulk, nil, or a list in brackets.
func (c *Client) Do(words ...string) (string, error) {
	var out strings.Builder
	fmt.Fprintf(&out, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(&out, "$%d\r\n%s\r\n", len(word), word)
	}
	_ = c.conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c.conn, out.String()); err != nil {
		return "", err
	}
	return c.reply()
}

func (c *Client) reply() (string, error) {
	line, err := c.in.ReadString('\n')
	line = strings.TrimSpace(line)
	if err != nil || line == "" {
		return "", err
	}
	n, _ := strconv.Atoi(line[1:])
	switch {
	case line[0] != '$' && line[0] != '*':
		return line, nil
	case n < 0:
		return "nil", nil
	case line[0] == '$':
		text := make([]byte, n+2)
		_, err = io.ReadFull(c.in, text)
		return "$" + string(text[:n]), err
	}
	var items []string
	for range n {
		item, err := c.reply()
		if err != nil {
			return "", err
		}
		items = append(items, item)
	}
	return "[" + strings.Join(items, " ") + "]", nil
}
