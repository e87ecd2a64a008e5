package fakeredis

import "bytes"

func (c *conn) cmdDel(args [][]byte) {
	var n int64
	for _, key := range args[1:] {
		if c.table().del(key, c.now) {
			n++
		}
	}
	c.int(n)
}

func (c *conn) cmdExists(args [][]byte) {
	var n int64
	for _, key := range args[1:] {
		if c.table().get(key, c.now) != nil {
			n++
		}
	}
	c.int(n)
}

func (c *conn) cmdPTTL(args [][]byte)        { c.expiry(args[1], c.now) }
func (c *conn) cmdPExpireTime(args [][]byte) { c.expiry(args[1], 0) }

// expiry answers when a key ends, from an instant on.
func (c *conn) expiry(key []byte, from int64) {
	switch e := c.table().get(key, c.now); {
	case e == nil:
		c.int(-2)
	case e.expires == never:
		c.int(-1)
	default:
		c.int(e.expires - from)
	}
}

func (c *conn) cmdType(args [][]byte) {
	if e := c.table().get(args[1], c.now); e == nil {
		c.simple("none")
	} else {
		c.simple(e.kind)
	}
}

// lengthen gives a key another time to live, unless it has as long or longer.
func (c *conn) lengthen(key, ttl []byte) {
	ms, _ := parseInt(ttl)
	if e := c.table().get(key, c.now); e.expires == never || e.expires-c.now < ms {
		e.expires = c.now + ms
		c.srv.touched(key)
	}
}

// cmdDelIfEq is the compare-and-delete of Valkey.
func (c *conn) cmdDelIfEq(args [][]byte) {
	e := c.table().get(args[1], c.now)
	if e != nil && e.kind != stringKind {
		c.fail(errWrongType)
		return
	}
	c.bool(c.delIfEq(e, args[1], args[2]))
}

// cmdDelEx is the compare-and-delete of Redis, with IFEQ.
func (c *conn) cmdDelEx(args [][]byte) {
	e := c.table().get(args[1], c.now)
	switch {
	case !is(args[2], "IFEQ"):
		c.fail("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE")
	case e != nil && e.kind != stringKind:
		c.fail("ERR Key should be of string type if conditions are specified")
	default:
		c.bool(c.delIfEq(e, args[1], args[3]))
	}
}

// delIfEq removes a key with a value, and reports whether it was there.
func (c *conn) delIfEq(e *entry, key, value []byte) bool {
	return e != nil && bytes.Equal(e.value(), value) && c.table().del(key, c.now)
}

func (c *conn) cmdFlushAll([][]byte) {
	c.srv.flush()
	c.ok()
}
