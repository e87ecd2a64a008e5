package fakeredis

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/internal/fencing"
)

// member is member.lua. It decides on a copy of the node, which becomes the node if
// every command that the change takes may be called.
func (f *fenceCall) member() {
	if !f.open("zrangebyscore", "'ZRANGEBYSCORE'") {
		return
	}
	if len(f.argv) < 2 {
		f.raise("'prov:'", "attempt to concatenate local 'me' (a nil value)")
		return
	}
	f.identify(f.argv[1])
	before := f.node
	f.node = cloneFence(before)
	state := before.Extend(f.me, true)
	verb, read := string(f.argv[0]), false
	var a fencing.Answer
	switch verb {
	case "notice":
		if state.Code == fencing.Amnesia && state.Text == "" {
			if f.barred("time", "'TIME'") {
				return
			}
			if f.arg(2) == nil {
				f.raise("ARGV[3] .. '.'", "attempt to concatenate field '?' (a nil value)")
				return
			}
		}
		a = f.node.Notice(f.me, string(f.arg(2)), f.micros())
	case "rejoin":
		x, ok := luaNumber(f.arg(3))
		if !ok && state.Code == fencing.Amnesia && state.Text != "" && state.Text == string(f.arg(2)) {
			f.raise("tonumber(ARGV[4]) >", "attempt to compare number with nil")
			return
		}
		a = f.node.Rejoin(f.me, string(f.arg(2)), token(x))
	case "read":
		if state.Code == fencing.OK && f.barred("zrevrange", "'ZREVRANGE'") {
			return
		}
		a, read = f.node.Read(f.me), true
	default:
		x, ok := luaNumber(f.arg(2))
		if !ok && state.Code == fencing.OK {
			f.raise("tonumber(ARGV[3]) >", "attempt to compare number with nil")
			return
		}
		a = f.node.Collect(f.me, token(x))
	}
	if a.Code == fencing.OK && !read && f.barred("zscore", "'ZSCORE'") ||
		f.node.Floor != before.Floor && f.barred("zadd", "'ZADD', set, x") {
		return
	}
	if f.node.Floor != before.Floor && f.barred("zremrangebyscore", "'ZREMRANGEBYSCORE', set, 0") {
		before.Floor = f.node.Floor
		return
	}
	if f.node.Marker != before.Marker &&
		(f.barred("zremrangebyscore", "'ZREMRANGEBYSCORE', set, -1") || f.barred("zadd", "'ZADD', set, -1")) {
		return
	}
	f.keep()
	f.sayWhole(a, read)
}

// keep stores the node under the key of the set, which is made if there is something
// to keep.
func (f *fenceCall) keep() {
	t, key := f.table(), f.keys[0]
	e := t.get(key, f.now)
	if e == nil && f.node.Marker.Phase == fencing.Absent {
		return
	}
	if e == nil {
		t.put(nil, key, nil, fenceKind, never, f.now)
		e = t.get(key, f.now)
	}
	e.fence = f.node
}

// member is one of the sorted set that a node is.
type member struct {
	name  string
	score float64
}

// members are the whole set, in order.
func members(n *fencing.Node) (all []member) {
	if n == nil { // planted
		return nil
	}
	if n.Marker.Phase != fencing.Absent {
		all = append(all, member{n.Marker.String(), -1})
	}
	if n.Floor > 0 {
		all = append(all, member{"floor", float64(n.Floor)})
	}
	for _, t := range n.Tokens {
		all = append(all, member{"k" + t.Name, float64(t.F)})
	}
	slices.SortFunc(all, func(a, b member) int {
		return cmp.Or(cmp.Compare(a.score, b.score), strings.Compare(a.name, b.name))
	})
	return all
}

// cmdZRange shows a set of tokens, by rank only.
func (c *conn) cmdZRange(args [][]byte) {
	first, ok1 := parseInt(args[2])
	last, ok2 := parseInt(args[3])
	withScores := len(args) == 5 && is(args[4], "WITHSCORES")
	e := c.table().get(args[1], c.now)
	switch {
	case len(args) > 4 && !withScores:
		c.fail(errSyntax)
	case !ok1 || !ok2:
		c.fail(errNotInteger)
	case e == nil:
		c.array(0)
	case e.kind != fenceKind:
		c.fail(errWrongType)
	default:
		c.ranked(part(members(e.fence), first, last), withScores)
	}
}

// ranked answers members of a set. RESP3 has pairs and numbers where RESP2 has text.
func (c *conn) ranked(all []member, withScores bool) {
	pairs := withScores && c.proto == 3
	if withScores && !pairs {
		c.array(2 * len(all))
	} else {
		c.array(len(all))
	}
	for _, m := range all {
		score := strconv.FormatFloat(m.score, 'f', -1, 64)
		if pairs {
			c.array(2)
		}
		c.text(m.name)
		switch {
		case pairs:
			c.out = append(c.out, ","+score+"\r\n"...)
		case withScores:
			c.text(score)
		}
	}
}
