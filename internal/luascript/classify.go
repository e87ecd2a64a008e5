package luascript

import (
	"bytes"
	"math"
	"slices"
	"time"
)

// Classify returns what the script does when it is called with these keys and arguments at the
// wall-clock time now, which only absolute times (PXAT, PEXPIREAT) are compared with. The error is
// a *Refusal. The Plan refers to the bytes of keys and argv.
func (s *Script) Classify(keys, argv [][]byte, now time.Time) (plan Plan, err error) {
	defer catch(s.name, &err)
	if len(keys) > maxKeys || len(argv) > maxArgs {
		refuse("%d keys and %d arguments, where %d and %d is the most", len(keys), len(argv), maxKeys, maxArgs)
	}
	if s.keys > 0 && len(keys) > s.keys {
		keys, argv = keys[:s.keys], slices.Concat(keys[s.keys:], argv)
	}
	r := newRun(s, keys, argv, now.UnixMilli())
	if plan = r.plan(); plan.run == nil {
		r.free()
	}
	return plan, nil
}

// world is what the script does where all keys hold the same.
type world struct {
	changes      [maxKeys]change
	reply        value
	hasSignalled bool
	messages     []Message
}

func (r *run) plan() Plan {
	var worlds [3]world
	for _, h := range []Holding{Foreign, Owned, Absent} { // what is no query meets the token in the first
		w := &worlds[h]
		r.in(func(int) Holding { return h })
		for i := range r.keys {
			if k := &r.keys[i]; !k.isPushed {
				w.changes[i] = r.change(k)
			}
		}
		w.reply, w.hasSignalled, w.messages = r.result, r.hasSignalled, r.messages
	}
	p := Plan{DB: r.db}
	members := r.members()
	for _, i := range members {
		p.Keys = append(p.Keys, r.keys[i].name)
	}
	row := func(h Holding) Row {
		w := &worlds[h]
		first := w.changes[members[0]]
		for _, i := range members[1:] {
			if c := w.changes[i]; c.effect != first.effect || c.ttl != first.ttl || !bytes.Equal(c.value, first.value) {
				refuse("what is done to %d keys is not the same for all", len(members))
			}
		}
		return Row{Effect: first.effect, TTL: first.ttl, Reply: replyOf(w.reply, len(members), new(int)), Messages: w.messages}
	}
	p.Absent, p.Owned, p.Other = row(Absent), row(Owned), row(Foreign)
	p.Class = classOf(p.Absent.Effect, p.Owned.Effect, p.Other.Effect)
	p.Token = r.tokenOf(worlds[Absent].changes[members[0]])
	for h, w := range worlds {
		isReleased := p.Class == ForceRelease || p.Class == Release && Holding(h) != Foreign
		if w.hasSignalled && !isReleased {
			refuse("a message or a list entry where nothing is released")
		}
	}
	if len(members) > 1 {
		r.checkMixed(p.Class, members)
		p.run = r
	}
	return p
}

// members returns the keys that belong to the lock. A key with a list is none; it must not have
// been used otherwise.
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

// tokenOf returns the token: what was compared, or else what the script writes.
func (r *run) tokenOf(set change) []byte {
	switch {
	case !r.hasToken:
		return set.value
	case set.effect == Set && !bytes.Equal(set.value, r.token):
		refuse("another value is written than the one that is compared")
	}
	return r.token
}

// classOf is the table of the package comment.
func classOf(absent, owned, other Effect) Class {
	switch [3]Effect{absent, owned, other} {
	case [3]Effect{None, None, None}:
		return Query
	case [3]Effect{Set, None, None}:
		return Acquire
	case [3]Effect{Set, Expire, None}:
		return AcquireOrRenew
	case [3]Effect{None, Delete, None}:
		return Release
	case [3]Effect{None, Expire, None}:
		return Extend
	case [3]Effect{None, Delete, Delete}:
		return ForceRelease
	case [3]Effect{None, Expire, Expire}:
		return ForceExtend
	}
	refuse("absent keys: %s, the token's: %s, those of others: %s; that is no operation on a lock", absent, owned, other)
	return Query
}

func (e Effect) String() string {
	return [...]string{"left alone", "set", "deleted", "given a TTL"}[e]
}

// checkMixed runs the script where one key differs from the others. There is no class for a lock
// of which a part is acquired or extended, so that must not happen; a part may be released.
func (r *run) checkMixed(class Class, members []int) {
	checkSeveral(class, len(members))
	for _, odd := range members {
		for _, its := range []Holding{Absent, Owned, Foreign} {
			for _, theirs := range []Holding{Absent, Owned, Foreign} {
				if its == theirs {
					continue
				}
				r.mixed(class, members, func(i int) Holding {
					if i == odd {
						return its
					}
					return theirs
				})
			}
		}
	}
}

// mixed runs the script where the keys hold different things, and returns what it does to each.
func (r *run) mixed(class Class, members []int, before func(i int) Holding) (effects []Effect) {
	r.in(before)
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

// Row is the row of the table where all keys hold the same.
func (p *Plan) Row(h Holding) *Row {
	return [...]*Row{Absent: &p.Absent, Owned: &p.Owned, Foreign: &p.Other}[h]
}

// In returns what the script does where its keys hold different things, in the order of p.Keys: the
// row with the reply, and the effect on each key. The error is a *Refusal.
func (p *Plan) In(holds []Holding) (row *Row, effects []Effect, err error) {
	if slices.Min(holds) == slices.Max(holds) {
		row = p.Row(holds[0])
		return row, slices.Repeat([]Effect{row.Effect}, len(holds)), nil
	}
	defer catch(p.run.script.name, &err)
	members := p.run.members()
	p.run.steps = 0
	effects = p.run.mixed(p.Class, members, func(i int) Holding {
		if at := slices.Index(members, i); at >= 0 {
			return holds[at]
		}
		return Absent
	})
	return &Row{Reply: replyOf(p.run.result, len(members), new(int)), Messages: p.run.messages}, effects, nil
}

func checkSeveral(class Class, keys int) {
	if keys > 1 && class != Acquire && class != Release && class != Extend {
		refuse("%s of %d keys", class, keys)
	}
}

// maxReply bounds the items and the bytes of a reply. A table may be in another one twice, so that
// a few steps make a reply that no memory holds.
const maxReply = 4 << 10

// replyOf converts a result as Redis does. size is that of the reply so far.
func replyOf(v value, keys int, size *int) Reply {
	if *size += 1 + len(v.str); *size > maxReply {
		refuse("a reply of more than %d items and bytes", maxReply)
	}
	if keys > 1 && (v.kind == stored || v.unit != known) {
		refuse("the reply is what one of %d keys holds", keys)
	}
	switch v.kind {
	case null:
		return Reply{}
	case boolean:
		if v.truth {
			return Reply{Kind: Int, Int: 1}
		}
		return Reply{}
	case str:
		return Reply{Kind: Bulk, Text: v.str}
	case stored:
		return Reply{Kind: Value}
	case numeric:
		n := math.Trunc(v.num)
		if math.IsNaN(n) || math.Abs(n) >= 1<<53 || n != v.num && v.unit != known {
			refuse("a reply that is no integer")
		}
		return Reply{Kind: [...]Kind{known: Int, milliseconds: PTTL, seconds: TTLSeconds}[v.unit], Int: int64(n)}
	case hidden:
		if v.truth {
			return Reply{Kind: Extended}
		}
		refuse("an unknown result is returned")
	}
	t := v.table
	if t.field == "" {
		reply := Reply{Kind: Array}
		for _, item := range t.items {
			reply.Items = append(reply.Items, replyOf(item, keys, size))
		}
		return reply
	}
	if t.of.kind != str {
		refuse("a status or an error that is no string")
	}
	if *size += len(t.of.str); *size > maxReply {
		refuse("a reply of more than %d items and bytes", maxReply)
	}
	kind := map[string]Kind{"ok": Status, "err": Error}[t.field]
	return Reply{Kind: kind, Text: oneLine(t.of.str)}
}

func oneLine(text []byte) []byte {
	text = bytes.ReplaceAll(text, []byte("\r"), []byte(" "))
	return bytes.ReplaceAll(text, []byte("\n"), []byte(" "))
}
