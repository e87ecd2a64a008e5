package fakeredis

import (
	"bytes"
	"math"
)

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

func (c *conn) cmdType(args [][]byte) {
	if e := c.table().get(args[1], c.now); e != nil {
		c.simple(e.kind)
	} else {
		c.simple("none")
	}
}

func (c *conn) cmdPTTL(args [][]byte) {
	switch e := c.table().get(args[1], c.now); {
	case e == nil:
		c.int(-2)
	case e.expires == never:
		c.int(-1)
	default:
		c.int(e.expires - c.now)
	}
}

// cmdPExpire knows no options: a lock client needs none.
func (c *conn) cmdPExpire(args [][]byte) {
	if len(args) > 3 {
		c.fail("ERR Unsupported option " + string(args[3]))
		return
	}
	if held, text := c.pexpire(args[1], args[2]); text != "" {
		c.fail(text)
	} else {
		c.bool(held)
	}
}

// pexpire gives a key a new time to live and reports whether there was one.
func (c *conn) pexpire(key, ttl []byte) (held bool, text string) {
	ms, ok := parseInt(ttl)
	if !ok {
		return false, errNotInteger
	}
	if ms > math.MaxInt64-c.now {
		return false, "ERR invalid expire time in 'pexpire' command"
	}
	e := c.table().get(key, c.now)
	if e == nil {
		return false, ""
	}
	if ms <= 0 {
		c.table().del(key, c.now)
	} else {
		e.expires = c.now + ms
		c.srv.touched(key)
	}
	return true, ""
}

// lengthen is pexpire for an existing key, unless it has as long or longer.
func (c *conn) lengthen(key, ttl []byte) (text string) {
	ms, ok := parseInt(ttl)
	if e := c.table().get(key, c.now); ok && e.expires != never && e.expires-c.now >= ms {
		return ""
	}
	_, text = c.pexpire(key, ttl)
	return text
}

// cmdDelIfEq is the compare-and-delete of Valkey.
func (c *conn) cmdDelIfEq(args [][]byte) {
	e := c.table().get(args[1], c.now)
	if e != nil && e.kind != stringKind {
		c.fail(errWrongType)
		return
	}
	held := e != nil && bytes.Equal(e.value(), args[2])
	if held {
		c.table().del(args[1], c.now)
	}
	c.bool(held)
}

// cmdDelEx is the compare-and-delete of Redis. Of its conditions it knows IFEQ.
func (c *conn) cmdDelEx(args [][]byte) {
	if len(args) == 2 {
		c.cmdDel(args)
		return
	}
	if len(args) != 4 {
		c.wrongArity("delex")
		return
	}
	e := c.table().get(args[1], c.now)
	switch {
	case e == nil:
		c.int(0)
	case e.kind != stringKind:
		c.fail("ERR Key should be of string type if conditions are specified")
	case !is(args[2], "IFEQ"):
		c.fail("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE")
	default:
		held := bytes.Equal(e.value(), args[3])
		if held {
			c.table().del(args[1], c.now)
		}
		c.bool(held)
	}
}

func (c *conn) cmdDBSize([][]byte) {
	c.int(int64(c.table().count))
}

func (c *conn) cmdFlushAll(args [][]byte) {
	if !flushOptions(args) {
		c.fail(errSyntax)
		return
	}
	c.srv.flush()
	c.flushedOK()
}

func (c *conn) cmdFlushDB(args [][]byte) {
	if !flushOptions(args) {
		c.fail(errSyntax)
		return
	}
	c.table().clear()
	c.srv.flushed()
	c.flushedOK()
}

// flushOptions checks the options of a flush of keys or scripts.
func flushOptions(args [][]byte) bool {
	return len(args) == 1 || len(args) == 2 && (is(args[1], "SYNC") || is(args[1], "ASYNC"))
}
