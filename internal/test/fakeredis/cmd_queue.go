package fakeredis

import (
	"bytes"
	"slices"
)

// queueKind is the type of a queue of processes. Its value is their ids in order, each with
// queueEnd after it: scores rise with every added id, so they show no more than the order.
const (
	queueKind = "zset"
	queueEnd  = '\n'
)

// gapID is the place of a gap.
const gapID = "gap"

func isGap(id []byte) bool { return string(id) == gapID }

// sharedID begins the place of a process that wants to share the lock.
const sharedID = "r"

func shares(id []byte) bool { return bytes.HasPrefix(id, []byte(sharedID)) }

// queueCommands are the commands of entering a queue, for the access list. All are checked before,
// while Lua comes as far as it can.
var queueCommands = []string{"zrange", "zadd", "set", "pexpire"}

// runQueue acts as the script of the queue: see package command.
func (c *conn) runQueue(keys, argv [][]byte) {
	s := c.srv
	for _, name := range queueCommands {
		if s.denied[name] {
			c.scriptError(queue, s.accessError(s.dialect.noScriptAccess, name))
			return
		}
	}
	if e := c.table().get(keys[0], c.now); e != nil && e.kind != queueKind {
		c.scriptError(queue, errWrongType)
		return
	}
	id, way := argv[0], argv[1]
	if c.srv.full && string(way) != "leave" && string(way) != "again" {
		c.scriptError(queue, errFull)
		return
	}
	c.remember(keys)
	spans := [5]int64{}
	for i := range spans {
		spans[i], _ = parseInt(argv[2+i])
	}
	switch {
	case len(keys) == 3 && !c.partFrom(keys, id, argv[7], spans[1]):
		return
	case len(keys) == 3:
		way = []byte("leave")
	case string(way) == "enter" && !shares(id) && !c.enterAtEnd(keys[0], keys[1], id, spans):
		return
	}
	c.answerQueue(keys[0], keys[1], id, way, spans)
}

// partFrom takes the process with this id out of a queue if the key of the lock has a value. It returns false if it has
// answered, and has left nothing to be done.
func (c *conn) partFrom(keys [][]byte, id, value []byte, head int64) (goesOn bool) {
	e := c.table().get(keys[2], c.now)
	if e == nil || e.kind != stringKind || !bytes.Equal(e.value(), value) {
		c.array(4)
		c.ints(-1, 0, 0, 0)
		return false
	}
	ids := slices.DeleteFunc(c.queued(keys[0]), func(one []byte) bool { return bytes.Equal(one, id) })
	c.enqueue(keys[0], ids)
	c.table().del(keys[1], c.now)
	switch {
	case len(ids) == 0:
		c.array(4)
		c.ints(0, 0, 0, 0)
		return false
	case shares(ids[0]), isGap(ids[0]):
		return true
	}
	ticket := slices.Concat(bytes.TrimSuffix(keys[1], id), ids[0])
	if c.table().get(ticket, c.now) == nil {
		return true
	}
	c.set(ticket, head)
	c.array(4)
	c.ints(0, 1, 0, head)
	return false
}

// enterAtEnd enters a process that is in no queue yet. It returns false if it has answered.
func (c *conn) enterAtEnd(key, ticket, id []byte, spans [5]int64) (goesOn bool) {
	ids := c.queued(key)
	if slices.ContainsFunc(ids, func(one []byte) bool { return bytes.Equal(one, id) }) {
		return true
	}
	place, others, lease, left := int64(1), int64(0), spans[0], int64(0)
	if len(ids) > 0 {
		front := slices.Concat(bytes.TrimSuffix(ticket, id), ids[0])
		switch {
		case shares(ids[0]), isGap(ids[0]), len(ids) == 1 && c.table().get(front, c.now) == nil:
			return true
		case len(ids) == 1:
			c.set(front, spans[1])
		}
		place, others, lease, left = 0, int64(min(len(ids), 2)), spans[2], spans[1]
	}
	c.enqueue(key, append(ids, id))
	t := c.table()
	t.put(t.get(ticket, c.now), ticket, nil, stringKind, c.now+lease, c.now)
	t.get(key, c.now).expires = c.now + lease + spans[1]
	c.srv.touched(key)
	c.array(4)
	c.ints(place, others, lease, left)
	return false
}

// set gives a key so long to live.
func (c *conn) set(key []byte, lives int64) {
	c.table().get(key, c.now).expires = c.now + lives
	c.srv.touched(key)
}

// answerQueue is runQueue for a process's id, with its ticket and the lifetimes of tickets: of a
// lone process, of the first, of the others, of a gap, and of the key that remembers one.
func (c *conn) answerQueue(key, ticket, id, way []byte, spans [5]int64) {
	alone, head, behind := spans[0], spans[1], spans[2]
	prefix := bytes.TrimSuffix(ticket, id)
	ticketOf := func(id []byte) []byte { return slices.Concat(prefix, id) }
	lives := func(id []byte) bool { return c.table().get(ticketOf(id), c.now) != nil }
	before := c.queued(key)
	ids := slices.Clone(before)
	is := func(other []byte) bool { return bytes.Equal(other, id) }
	leaves := string(way) == "leave"
	if leaves || string(way) == "again" {
		other := slices.Concat([]byte(sharedID), id)
		if shares(id) {
			other = id[len(sharedID):]
		}
		ids = slices.DeleteFunc(ids, func(one []byte) bool { return is(one) || bytes.Equal(one, other) })
		c.table().del(ticket, c.now)
		c.table().del(ticketOf(other), c.now)
	}
	if !leaves && !slices.ContainsFunc(ids, is) {
		ids = append(ids, id)
	}
	if string(way) == gapID && !c.leftGap(key, spans[4]) {
		ids = append([][]byte{way}, slices.DeleteFunc(ids, isGap)...)
		gap := ticketOf(way)
		c.table().put(c.table().get(gap, c.now), gap, nil, stringKind, c.now+spans[3], c.now)
	}
	for len(ids) > 0 && !is(ids[0]) && !lives(ids[0]) {
		ids = ids[1:]
	}
	if leaves && len(ids) == 1 && isGap(ids[0]) {
		c.table().del(ticketOf(ids[0]), c.now)
		ids = nil
	}
	left, exclusive, turn, front := int64(0), int64(0), false, true
	var rest, turns [][]byte
	for i, one := range ids {
		if i > 0 && front && !shares(one) && !is(one) && !lives(one) {
			continue
		}
		inTurn := front && (i == 0 || shares(one))
		switch {
		case is(one):
			turn = inTurn
		case !shares(one) && !isGap(one):
			exclusive++
			fallthrough
		default:
			if inTurn && lives(one) {
				turns = append(turns, one)
			}
		}
		front = front && shares(one)
		rest = append(rest, one)
	}
	ids = rest
	if !slices.EqualFunc(before, ids, bytes.Equal) {
		c.enqueue(key, ids)
	}
	others, gap := int64(len(ids)), len(ids) > 0 && isGap(ids[0])
	if len(ids) > 0 && !shares(ids[0]) && !shares(id) {
		others = min(others, 3)
	}
	if !leaves {
		others--
	}
	if gap {
		others--
	}
	if shares(id) {
		others = exclusive
	}
	wanted := exclusive > 0 || len(ids) == 0 || !shares(ids[0]) || !shares(id) && !leaves
	for i, one := range turns {
		most := head
		if !wanted && c.table().get(ticketOf(one), c.now).expires-c.now > behind {
			most = alone
		}
		if ends := c.shorten(ticketOf(one), most); i == 0 && !turn {
			left = ends
		}
	}
	c.array(4)
	if leaves {
		c.ints(0, others, 0, left)
		return
	}
	lease, place := behind, int64(0)
	switch {
	case gap:
		place = 2
	case turn && (len(ids) == 1 || shares(id) && exclusive == 0):
		place, lease = 1, alone
	case turn:
		place, lease = 1, head
	}
	t := c.table()
	t.put(t.get(ticket, c.now), ticket, nil, stringKind, c.now+lease, c.now)
	if e := t.get(key, c.now); e != nil {
		e.expires = c.now + max(lease, behind) + head
		c.srv.touched(key)
	}
	c.ints(place, others, lease, left)
}

// leftGap reports whether a queue has left a gap lately, and remembers one from now on.
func (c *conn) leftGap(queue []byte, every int64) (lately bool) {
	t, name := c.table(), slices.Concat(bytes.TrimSuffix(queue, []byte("queue")), []byte(gapID))
	if t.get(name, c.now) != nil {
		return true
	}
	t.put(nil, name, nil, stringKind, c.now+every, c.now)
	return false
}

// queued is the ids in a queue.
func (c *conn) queued(key []byte) (ids [][]byte) {
	if e := c.table().get(key, c.now); e != nil {
		for id := range bytes.SplitSeq(bytes.Clone(e.value()), []byte{queueEnd}) {
			ids = append(ids, id)
		}
		ids = ids[:len(ids)-1] // after the last end
	}
	return ids
}

// enqueue makes ids a queue. An empty one is no key.
func (c *conn) enqueue(key []byte, ids [][]byte) {
	t := c.table()
	if len(ids) == 0 {
		t.del(key, c.now)
		return
	}
	e, expires := t.get(key, c.now), never
	if e != nil {
		expires = e.expires
	}
	var value []byte
	for _, id := range ids {
		value = append(append(value, id...), queueEnd)
	}
	t.put(e, key, value, queueKind, expires, c.now)
}

// shorten gives a key at most so long to live, and returns its lifetime.
func (c *conn) shorten(key []byte, most int64) (left int64) {
	e := c.table().get(key, c.now)
	if e.expires == never || e.expires-c.now > most {
		e.expires = c.now + most
		c.srv.touched(key)
	}
	return e.expires - c.now
}

func (c *conn) ints(all ...int64) {
	for _, n := range all {
		c.int(n)
	}
}
