package luascript

import (
	"bytes"
	"sync"
)

const (
	maxSteps = 20_000 // of all worlds of a call: half a millisecond of those of others
	maxKeys  = 16
	maxArgs  = 64
)

// Holding is what a key holds when the script begins.
type Holding uint8

const (
	Absent  Holding = iota
	Owned           // the token
	Foreign         // another value
)

// key is a key in the present world, and what is learned of it in all of them.
type key struct {
	name  []byte
	index int

	before Holding
	exists bool
	kept   bool   // it holds the value that it held before
	value  []byte // else
	ttl    TTL    // Rest of 0 ms: it was not changed

	isLock    bool // it is read or written
	isTouched bool // it is deleted or expired, and that result is not used
	isPushed  bool // it is a list for signals
}

// touch notes a command that a signal may consist of, if its result is not used.
func (k *key) touch(c *command) {
	k.isTouched = true
	k.isLock = k.isLock || !c.isStatement
}

// run is the state of one call of a script, in one world after the other.
type run struct {
	script *Script
	now    int64 // Unix time in ms

	keysTable, argvTable table
	keys                 []key // each once
	locals               []value
	args                 []value // of the commands that are evaluated, each behind those of the one around it
	steps                int

	token    []byte // what the value was compared with
	hasToken bool

	// of the present world
	commands     int
	db           int
	hasSignalled bool
	messages     []Message
	result       value
}

// runs are those whose slices are used again: each call of a script needs one.
var runs = sync.Pool{New: func() any { return new(run) }}

func newRun(s *Script, keys, argv [][]byte, now int64) *run {
	r := runs.Get().(*run)
	r.script, r.now = s, now
	r.locals = append(r.locals, make([]value, s.slots)...)
	for _, name := range keys {
		r.keysTable.items = append(r.keysTable.items, value{kind: str, origin: fromKeys, str: name})
		isNew := true
		for i := range r.keys {
			isNew = isNew && !bytes.Equal(r.keys[i].name, name)
		}
		if isNew {
			r.keys = append(r.keys, key{name: name, index: len(r.keys)})
		}
	}
	for _, arg := range argv {
		r.argvTable.items = append(r.argvTable.items, value{kind: str, origin: fromArgs, str: arg})
	}
	return r
}

// free gives a run back, without what its call has passed.
func (r *run) free() {
	empty := func(of []value) []value {
		clear(of)
		return of[:0]
	}
	clear(r.keys)
	*r = run{
		keysTable: table{items: empty(r.keysTable.items)}, argvTable: table{items: empty(r.argvTable.items)},
		keys: r.keys[:0], locals: empty(r.locals), args: empty(r.args[:cap(r.args)]),
	}
	runs.Put(r)
}

// step bounds the work of a call: every value that is computed costs one, and long strings more.
func (r *run) step(n int) {
	if r.steps += n; r.steps > maxSteps {
		refuse("more than %d steps", maxSteps)
	}
}

func (r *run) eval(e expression) value {
	r.step(1)
	return e.eval(r)
}

// isToken reports whether a key holds the argument that its value is compared with. By the first
// such comparison the argument is the token; a second token would be a fourth world.
func (r *run) isToken(key int, arg []byte) bool {
	if !r.hasToken {
		r.token, r.hasToken = arg, true
	} else if !bytes.Equal(r.token, arg) {
		refuse("the value at the key is compared with two different arguments")
	}
	return r.keys[key].before == Owned
}

// in runs the script in the world where the keys hold what before returns.
func (r *run) in(before func(i int) Holding) {
	for i := range r.keys {
		k := &r.keys[i]
		k.before = before(i)
		k.exists, k.kept, k.value = k.before != Absent, k.before != Absent, nil
		k.ttl = TTL{Rest: k.exists}
	}
	clear(r.locals)
	r.commands, r.db, r.hasSignalled, r.messages, r.result = 0, -1, false, nil, value{}
	r.script.main.exec(r)
}

// change is what became of a key.
type change struct {
	effect Effect
	ttl    TTL
	value  []byte // of Set
}

// change returns the difference between before and now.
func (r *run) change(k *key) change {
	switch {
	case !k.exists && k.before == Absent:
		return change{}
	case !k.exists:
		return change{effect: Delete}
	case k.before == Absent:
		return change{Set, k.ttl, k.value}
	case !k.kept && k.before == Foreign:
		refuse("what another client holds is given a new value")
	case !k.kept && !bytes.Equal(k.value, r.token):
		refuse("the token is replaced by another value")
	}
	if k.ttl == (TTL{Rest: true}) {
		return change{}
	}
	return change{effect: Expire, ttl: k.ttl}
}
