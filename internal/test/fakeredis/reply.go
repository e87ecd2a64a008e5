package fakeredis

import (
	"bytes"
	"strconv"

	"github.com/tidwall/redcon"
)

// The replies of a command, appended to the connection's output.

func (c *conn) ok()             { c.out = redcon.AppendOK(c.out) }
func (c *conn) int(n int64)     { c.out = redcon.AppendInt(c.out, n) }
func (c *conn) array(n int)     { c.out = redcon.AppendArray(c.out, n) }
func (c *conn) bulk(b []byte)   { c.out = redcon.AppendBulk(c.out, b) }
func (c *conn) text(s string)   { c.out = redcon.AppendBulkString(c.out, s) }
func (c *conn) simple(s string) { c.out = redcon.AppendString(c.out, s) }

// fail answers an error; text starts with the code and has no dash.
func (c *conn) fail(text string) { c.out = redcon.AppendError(c.out, text) }

func (c *conn) bool(yes bool) {
	if yes {
		c.int(1)
	} else {
		c.int(0)
	}
}

func (c *conn) null() {
	if c.proto == 3 {
		c.out = append(c.out, "_\r\n"...)
	} else {
		c.out = redcon.AppendNull(c.out)
	}
}

// dict heads a map of n pairs. RESP2 writes it as an array.
func (c *conn) dict(n int) {
	if c.proto == 3 {
		c.out = append(c.out, '%')
		c.out = strconv.AppendInt(c.out, int64(n), 10)
		c.out = append(c.out, "\r\n"...)
	} else {
		c.array(2 * n)
	}
}

// verbatim answers text meant for people: a verbatim string in RESP3.
func (c *conn) verbatim(s string) {
	if c.proto != 3 {
		c.text(s)
		return
	}
	c.out = append(c.out, '=')
	c.out = strconv.AppendInt(c.out, int64(len(s)+len("txt:")), 10)
	c.out = append(c.out, "\r\ntxt:"...)
	c.out = append(c.out, s...)
	c.out = append(c.out, "\r\n"...)
}

// parseInt reads an integer as strictly as Redis does: no sign but a minus, no
// leading zero, no space.
func parseInt(b []byte) (n int64, ok bool) {
	n, err := strconv.ParseInt(string(b), 10, 64)
	var digits [20]byte
	return n, err == nil && bytes.Equal(strconv.AppendInt(digits[:0], n, 10), b)
}
