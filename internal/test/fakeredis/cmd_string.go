package fakeredis

import (
	"bytes"
	"math"
)

const (
	errSyntax     = "ERR syntax error"
	errNotInteger = "ERR value is not an integer or out of range"
	errReadOnly   = "READONLY You can't write against a read only replica."
	errWrongType  = "WRONGTYPE Operation against a key holding the wrong kind of value"
)

// table is the connection's selected database.
func (c *conn) table() *table { return &c.srv.dbs[c.db] }

func (c *conn) cmdGet(args [][]byte) {
	c.value(c.table().get(args[1], c.now))
}

// value answers the value of a key, and reports whether this is a string or null.
func (c *conn) value(e *entry) bool {
	switch {
	case e == nil:
		c.null()
	case e.kind != stringKind:
		c.fail(errWrongType)
		return false
	default:
		c.bulk(e.value())
	}
	return true
}

func (c *conn) cmdMGet(args [][]byte) {
	c.array(len(args) - 1)
	for _, key := range args[1:] {
		if e := c.table().get(key, c.now); e != nil && e.kind == stringKind {
			c.bulk(e.value())
		} else {
			c.null()
		}
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
	if last = min(last, n-1); first > last || n == 0 {
		return nil
	}
	return value[first : last+1]
}

// setOptions are the words after SET key value. At most one of the conditions, and
// one of the ways to set a time to live, may be given.
type setOptions struct {
	nx, xx, get, keepTTL bool
	ifEq                 []byte // nil without such a condition

	unit  ttlUnit
	count []byte // in that unit
}

// ttlUnit is how SET is given the end of a key.
type ttlUnit uint8

const (
	noTTL ttlUnit = iota
	inSeconds
	inMillis
	atSecond
	atMilli
)

func (c *conn) cmdSet(args [][]byte) {
	var o setOptions
	if !o.parse(args[3:], c.srv.dialect.ifEq) {
		c.fail(errSyntax)
		return
	}
	expires, text := o.expires(c.now)
	if text != "" {
		c.fail(text)
		return
	}
	t := c.table()
	e := t.get(args[1], c.now)
	if e != nil && e.kind != stringKind && (o.get || o.ifEq != nil) {
		c.fail(errWrongType)
		return
	}
	if o.get {
		c.value(e)
	}
	if o.nx && e != nil || o.xx && e == nil || o.ifEq != nil && (e == nil || !bytes.Equal(e.value(), o.ifEq)) {
		if !o.get {
			c.null()
		}
		return
	}
	if o.keepTTL && e != nil {
		expires = e.expires
	}
	t.put(e, args[1], args[2], stringKind, expires, c.now)
	if !o.get {
		c.ok()
	}
}

// parse reads the options, and reports whether they go together.
func (o *setOptions) parse(words [][]byte, ifEq bool) bool {
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		switch {
		case is(word, "NX") && !o.xx && o.ifEq == nil:
			o.nx = true
		case is(word, "XX") && !o.nx && o.ifEq == nil:
			o.xx = true
		case is(word, "GET"):
			o.get = true
		case is(word, "KEEPTTL") && o.unit == noTTL:
			o.keepTTL = true
		case is(word, "IFEQ") && ifEq && len(words) > 0 && !o.nx && !o.xx && o.ifEq == nil:
			o.ifEq, words = words[0], words[1:]
		default:
			unit := unitOf(word)
			if unit == noTTL || len(words) == 0 || o.keepTTL || o.unit != noTTL && o.unit != unit {
				return false
			}
			o.unit, o.count, words = unit, words[0], words[1:]
		}
	}
	return true
}

func unitOf(word []byte) ttlUnit {
	switch {
	case is(word, "PX"):
		return inMillis
	case is(word, "EX"):
		return inSeconds
	case is(word, "PXAT"):
		return atMilli
	case is(word, "EXAT"):
		return atSecond
	}
	return noTTL
}

// expires computes when the key ends, or returns an error for a wrong time.
func (o *setOptions) expires(now int64) (at int64, text string) {
	if o.unit == noTTL {
		return never, ""
	}
	at, ok := parseInt(o.count)
	if !ok {
		return 0, errNotInteger
	}
	const invalid = "ERR invalid expire time in 'set' command"
	if at <= 0 {
		return 0, invalid
	}
	if o.unit == inSeconds || o.unit == atSecond {
		if at > math.MaxInt64/1000 {
			return 0, invalid
		}
		at *= 1000
	}
	if o.unit == inSeconds || o.unit == inMillis {
		if at > math.MaxInt64-now {
			return 0, invalid
		}
		at += now
	}
	return at, ""
}
