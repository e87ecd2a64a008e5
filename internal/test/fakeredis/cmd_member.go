package fakeredis

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/test/fencenode"
)

// member is member.lua. It decides on a copy of the node. The copy becomes the node if its change is
// allowed.
func (f *fenceCall) member() {
	if !f.open("zrangebyscore") {
		return
	}
	f.identify(f.argv[1])
	before := f.node
	f.node = cloneFence(before)
	lapsed := f.node.Lapse(f.me, f.micros())
	state := f.node.Extend(f.me, true)
	verb, votes, forgot := string(f.argv[0]), state.Code == fencing.OK, state.Code == fencing.Amnesia
	arg := func(i int) []byte { // or nothing
		if i < len(f.argv) {
			return f.argv[i]
		}
		return nil
	}
	var a fencing.Answer
	switch nonce := f.node.Marker.Nonce; {
	case verb == "rejoin" && nonce != "" && nonce == string(arg(2)) && before.Marker.Me.Run == f.me.Run:
		a = f.node.Rejoin(f.me, nonce, token(arg(3)), string(arg(4)))
	case verb == "show":
		a = f.node.Show(f.me)
		a.Age = f.node.Age(f.me, f.micros())
	case verb == "read":
		a = f.node.Read(f.me)
	case votes && verb == "seal":
		a = f.node.Seal(f.me, string(arg(2)), f.micros())
	case votes && verb == "raise":
		a = f.node.Raise(f.me, token(arg(2)))
	case votes && verb == "collect":
		a = f.node.Collect(f.me, uint64(token(arg(2))), f.micros())
	case forgot && verb == "resume":
		a = f.node.Resume(f.me, string(arg(2)), f.micros())
	case forgot && verb == "notice":
		a = f.node.Notice(f.me, string(arg(2)), f.micros())
	default:
		a = f.node.Rejoin(f.me, "", 0, "") // which does nothing
	}
	if lapsed && f.node.Marker.Phase == fencing.Absent {
		f.node.Marker = before.Marker
	}
	if (f.node.Floor != before.Floor || f.node.Marker != before.Marker || f.node.Noticed != before.Noticed) && f.barred("zadd") {
		return
	}
	f.keep()
	f.sayWhole(a, true)
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
	if n.Marker.Phase != fencing.Absent {
		all = append(all, member{n.Marker.String(), -1})
	}
	if n.Marker.Phase == fencing.Provisional {
		all = append(all, member{"noticed", -float64(n.Noticed)})
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

// cmdZRange shows a set of tokens, or a shared lock, by rank only.
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
	case e.ends != nil:
		c.ranked(part(holdersOf(e.ends), first, last), withScores)
	default:
		c.ranked(part(members(e.fence), first, last), withScores)
	}
}

// ranked answers members of a set, as RESP2 has them.
func (c *conn) ranked(all []member, withScores bool) {
	if n := len(all); withScores {
		c.array(2 * n)
	} else {
		c.array(n)
	}
	for _, m := range all {
		c.text(m.name)
		if withScores {
			c.text(strconv.FormatFloat(m.score, 'f', -1, 64))
		}
	}
}
