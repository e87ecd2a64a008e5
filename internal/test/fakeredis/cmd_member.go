package fakeredis

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/test/fencenode"
)

// member is member.lua. It decides on a copy of the node. The copy becomes the node if every
// command of the change is allowed.
func (f *fenceCall) member() {
	if !f.open("zrangebyscore", "'ZRANGEBYSCORE'") {
		return
	}
	if len(f.argv) < 2 {
		f.raise("me:match", "attempt to index local 'me' (a nil value)")
		return
	}
	f.identify(f.argv[1])
	before := f.node
	f.node = cloneFence(before)
	state := before.Extend(f.me, true)
	verb, votes := string(f.argv[0]), state.Code == fencing.OK
	const compare = "tonumber(x) > 9007"
	var a fencing.Answer
	switch nonce := before.Marker.Nonce; {
	case state.Code == fencing.Foreign:
		a = state
	case verb == "rejoin" && nonce != "" && nonce == string(f.arg(2)) && before.Marker.Me.Run == f.me.Run:
		x, ok := luaNumber(f.arg(3))
		if !ok {
			f.raise(compare, "attempt to compare number with nil")
			return
		}
		if f.arg(4) == nil {
			f.raise("ARGV[5]", "attempt to concatenate field '?' (a nil value)")
			return
		}
		a = f.node.Rejoin(f.me, nonce, token(x), string(f.arg(4)))
	case verb == "show", verb == "read" && votes:
		a = f.node.Show(f.me)
	case votes && verb == "seal":
		if before.Marker.Me != f.me || nonce == "" {
			if f.barred("time", "'TIME'") {
				return
			}
			if f.arg(2) == nil {
				f.raise("ARGV[3] .. '.' .. string.format('%.0f', micros()))", "attempt to concatenate field '?' (a nil value)")
				return
			}
		}
		a = f.node.Seal(f.me, string(f.arg(2)), f.micros())
	case votes && verb == "raise":
		x, ok := luaNumber(f.arg(2))
		if !ok {
			f.raise(compare, "attempt to compare number with nil")
			return
		}
		a = f.node.Raise(f.me, token(x))
	case votes && verb == "collect":
		if f.barred("time", "'TIME'") {
			return
		}
		age, ok := luaNumber(f.arg(2))
		if !ok {
			kind := "string"
			if f.arg(2) == nil {
				kind = "nil"
			}
			f.raise("micros() - ARGV[3]", "attempt to perform arithmetic on field '?' (a "+kind+" value)")
			return
		}
		a = f.node.Collect(f.me, uint64(token(age)), f.micros())
	case votes:
		a = fencing.Answer{Code: fencing.Active}
	case verb == "notice" && !fencenode.Keeps(state.Text, string(f.arg(2))):
		if f.barred("time", "'TIME'") {
			return
		}
		if f.arg(2) == nil {
			f.raise("ARGV[3] .. '.'", "attempt to concatenate field '?' (a nil value)")
			return
		}
		a = f.node.Notice(f.me, string(f.arg(2)), f.micros())
	case verb == "resume":
		a = f.node.Resume(f.me)
	default:
		a = state
	}
	shows := a.Code == fencing.OK && (verb == "show" || verb == "read" || verb == "seal")
	if a.Code == fencing.OK && !shows && verb != "resume" && f.barred("zscore", "'ZSCORE'") ||
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
	if shows && f.barred("zrevrange", "'ZREVRANGE'") {
		return
	}
	f.keep()
	f.sayWhole(a, shows)
}

// keep stores the node under the key of the set, made if there is something to keep.
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

// member is a member of a node's sorted set.
type member struct {
	name  string
	score float64
}

// members are the whole set, in order.
func members(n *fencenode.Node) (all []member) {
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
