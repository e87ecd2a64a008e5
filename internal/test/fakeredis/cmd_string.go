package fakeredis

import "math"

const (
	errFull       = "OOM command not allowed when used memory > 'maxmemory'."
	errSyntax     = "ERR syntax error"
	errNotInteger = "ERR value is not an integer or out of range"
	errWrongType  = "WRONGTYPE Operation against a key holding the wrong kind of value"
)

func (c *conn) table() *table { return &c.srv.keys }

func (c *conn) cmdGet(args [][]byte) {
	switch e := c.table().get(args[1], c.now); {
	case e == nil:
		c.null()
	case e.kind != stringKind:
		c.fail(errWrongType)
	default:
		c.bulk(e.value())
	}
}

// cmdGetRange answers the bytes of a value from one place to another, both included; negative ones
// are counted from the end.
func (c *conn) cmdGetRange(args [][]byte) {
	first, ok1 := parseInt(args[2])
	last, ok2 := parseInt(args[3])
	e := c.table().get(args[1], c.now)
	switch {
	case !ok1 || !ok2:
		c.fail(errNotInteger)
	case e == nil:
		c.bulk(nil)
	case e.kind != stringKind:
		c.fail(errWrongType)
	default:
		c.bulk(part(e.value(), first, last))
	}
}

// part is the range of GETRANGE in a value, and of ZRANGE in the members of a set.
func part[T any](value []T, first, last int64) []T {
	n := int64(len(value))
	if first < 0 && last < 0 && first > last {
		return nil
	}
	if first < 0 {
		first = max(0, n+first)
	}
	if last < 0 {
		last = max(0, n+last)
	}
	last = min(last, n-1)
	if first > last || n == 0 {
		return nil
	}
	return value[first : last+1]
}

// cmdSet knows NX and PX.
func (c *conn) cmdSet(args [][]byte) {
	nx, expires := false, never
	for words := args[3:]; len(words) > 0; words = words[1:] {
		switch {
		case is(words[0], "NX"):
			nx = true
		case is(words[0], "PX") && len(words) > 1 && expires == never:
			words = words[1:]
			ms, ok := parseInt(words[0])
			if !ok {
				c.fail(errNotInteger)
				return
			}
			if ms <= 0 || ms > math.MaxInt64-c.now {
				c.fail("ERR invalid expire time in 'set' command")
				return
			}
			expires = c.now + ms
		default:
			c.fail(errSyntax)
			return
		}
	}
	t := c.table()
	e := t.get(args[1], c.now)
	if nx && e != nil {
		c.null()
		return
	}
	t.put(e, args[1], args[2], stringKind, expires, c.now)
	c.ok()
}
