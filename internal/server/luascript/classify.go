package luascript

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"time"
)

// Classify returns what the script does when called with these keys and arguments at the wall-clock
// time now. Only absolute times (PXAT, PEXPIREAT) are compared with now. The error is a *Refusal.
// The Plan refers to the bytes of keys and argv.
func (s *Script) Classify(keys, argv [][]byte, now time.Time) (plan Plan, err error) {
	defer catch(s.Name, &err)
	if len(keys) > maxKeys || len(argv) > maxArgs {
		refuse("%d keys and %d arguments, where %d and %d is the most", len(keys), len(argv), maxKeys, maxArgs)
	}
	if s.keys > 0 && len(keys) > s.keys {
		keys, argv = keys[:s.keys], slices.Concat(keys[s.keys:], argv)
	}
	r := &run{script: s, now: now.UnixMilli(), locals: make([]value, s.slots)}
	for _, name := range keys {
		i := slices.IndexFunc(r.keys, func(k key) bool { return bytes.Equal(k.name, name) })
		if i < 0 {
			i = len(r.keys)
			r.keys = append(r.keys, key{name: name})
		}
		r.keysTable.items = append(r.keysTable.items, value{kind: str, origin: fromKeys, str: name, key: i})
	}
	for _, arg := range argv {
		r.argvTable.items = append(r.argvTable.items, value{kind: str, origin: fromArgs, str: arg})
	}
	return r.plan(), nil
}

func (r *run) plan() (p Plan) {
	for _, h := range []Holding{Foreign, Owned, Absent} { // any but a query meets the token in the first
		r.in(func(int) Holding { return h })
		p.Rows[h] = Row{Reply: replyOf(r.result, new(int)), Messages: r.messages, hasSignalled: r.hasSignalled}
		for i := range r.keys {
			r.keys[i].became[h] = r.change(&r.keys[i])
		}
	}
	p.DB = r.db
	members := r.members()
	for _, i := range members {
		p.Keys = append(p.Keys, r.keys[i].name)
	}
	for h := range p.Rows {
		row, first := &p.Rows[h], r.keys[members[0]].became[h]
		row.Effect, row.TTL = first.effect, first.ttl
		for _, i := range members[1:] {
			if c := r.keys[i].became[h]; c.effect != first.effect || c.ttl != first.ttl || !bytes.Equal(c.value, first.value) {
				refuse("what is done to %d keys is not the same for all", len(members))
			}
		}
		if len(members) > 1 && row.Reply.Shows() {
			refuse("the reply is what one of %d keys holds", len(members))
		}
	}
	effects := [...]Effect{p.Rows[Absent].Effect, p.Rows[Owned].Effect, p.Rows[Foreign].Effect}
	class, isKnown := classes[effects]
	if !isKnown {
		refuse("absent keys: %s, the token's: %s, those of others: %s; that is no operation on a lock", effects[0], effects[1], effects[2])
	}
	// The token is the compared argument, or else the written one.
	p.Class, p.Token = class, r.token
	if set := r.keys[members[0]].became[Absent]; !r.hasToken {
		p.Token = set.value
	} else if set.effect == Set && !bytes.Equal(set.value, r.token) {
		refuse("another value is written than the one that is compared")
	}
	for h, row := range p.Rows {
		if row.hasSignalled && p.Class != ForceRelease && (p.Class != Release || Holding(h) == Foreign) {
			refuse("a message or a list entry where nothing is released")
		}
	}
	if len(members) > 1 {
		r.checkMixed(p.Class, members)
		p.run = r
	}
	return p
}

// members returns the keys of the lock. A key with a list is none, and must have no other use.
func (r *run) members() (members []int) {
	for i := range r.keys {
		switch k := &r.keys[i]; {
		case k.isPushed && k.isLock:
			refuse("one key is a lock and a list")
		case !k.isPushed && (k.isLock || k.isTouched):
			members = append(members, i)
		}
	}
	if len(members) == 0 {
		refuse("no command on a key")
	}
	return members
}

// classes is the table of the package comment.
var classes = map[[3]Effect]Class{
	{None, None, None}: Query, {Set, None, None}: Acquire, {Set, Expire, None}: AcquireOrRenew,
	{None, Delete, None}: Release, {None, Expire, None}: Extend,
	{None, Delete, Delete}: ForceRelease, {None, Expire, Expire}: ForceExtend,
}

func (e Effect) String() string {
	return [...]string{"left alone", "set", "deleted", "given a TTL"}[e]
}

// checkMixed runs the script with one key different from the others. There is no class for acquiring or extending a
// part of a lock, so this must not happen; a part may be released.
func (r *run) checkMixed(class Class, members []int) {
	if class != Acquire && class != Release && class != Extend {
		refuse("%s of %d keys", class, len(members))
	}
	for odd := range members {
		for its := range Foreign + 1 {
			for theirs := range Foreign + 1 {
				if holds := slices.Repeat([]Holding{theirs}, len(members)); its != theirs {
					holds[odd] = its
					r.mixed(class, members, holds)
				}
			}
		}
	}
}

// mixed runs the script with different holdings of the keys, and returns its effect on each.
func (r *run) mixed(class Class, members []int, holds []Holding) (effects []Effect) {
	r.in(func(i int) Holding {
		if at := slices.Index(members, i); at >= 0 {
			return holds[at]
		}
		return Absent
	})
	if !slices.Equal(r.members(), members) {
		refuse("a key is used only where others differ")
	}
	for _, i := range members {
		k := &r.keys[i]
		effect := r.change(k).effect
		if effect != None && (class != Release || k.before != Owned || effect != Delete) {
			refuse("some of %d keys are %s when the others are not free or not owned", len(members), effect)
		}
		effects = append(effects, effect)
	}
	return effects
}

// In returns the effect of the script for different holdings of its keys, in the order of p.Keys: the row with the
// reply, and the effect on each key. The error is a *Refusal.
func (p *Plan) In(holds []Holding) (row *Row, effects []Effect, err error) {
	if slices.Min(holds) == slices.Max(holds) {
		row = &p.Rows[holds[0]]
		return row, slices.Repeat([]Effect{row.Effect}, len(holds)), nil
	}
	defer catch(p.run.script.Name, &err)
	members := p.run.members()
	p.run.steps = 0
	effects = p.run.mixed(p.Class, members, holds)
	row = &Row{Reply: replyOf(p.run.result, new(int)), Messages: p.run.messages}
	if row.Reply.Shows() {
		refuse("the reply is what one of %d keys holds", len(members))
	}
	return row, effects, nil
}

// maxReply bounds the items and the bytes of a reply. A table may contain another one twice, so a
// few steps could make a reply too large for any memory.
const maxReply = 4 << 10

// kinds is the kind of a table as a reply, by its field.
var kinds = map[string]Kind{"": Array, "ok": Status, "err": Error}

// replyOf converts a result as Redis does. size is the size of the reply so far.
func replyOf(v value, size *int) (reply Reply) {
	*size += 1 + len(v.str)
	if *size > maxReply {
		refuse("a reply of more than %d items and bytes", maxReply)
	}
	switch v.kind {
	case boolean:
		if v.truth {
			return Reply{Kind: Int, Int: 1}
		}
	case str:
		return Reply{Kind: Bulk, Text: v.str}
	case stored:
		return Reply{Kind: Value}
	case numeric:
		n := math.Trunc(v.num)
		if math.IsNaN(n) || math.Abs(n) >= 1<<53 || n != v.num && v.unit != known {
			refuse("a reply that is no integer")
		}
		return Reply{Kind: cmp.Or(v.unit, Int), Int: int64(n)}
	case hidden:
		refuse("an unknown result is returned")
	case tables:
		for _, item := range v.table.items {
			reply.Items = append(reply.Items, replyOf(item, size))
		}
		reply.Kind = kinds[v.table.field]
		if reply.Kind != Array {
			if v.table.items[0].kind != str {
				refuse("a status or an error that is no string")
			}
			reply.Text, reply.Items = reply.Items[0].Text, nil
		}
	}
	return reply
}
