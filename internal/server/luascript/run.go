package luascript

import "bytes"

const (
	maxSteps = 20_000 // of all worlds of a call: others wait for half a millisecond
	maxKeys  = 16
	maxArgs  = 64
)

// key is a key in the present world, and the facts learned of it in all of them.
type key struct {
	name   []byte
	before Holding
	exists bool
	kept   bool      // it holds its earlier value
	value  []byte    // else
	ttl    TTL       // Rest of 0 ms: unchanged
	became [3]change // by the holding of all keys

	isLock    bool // it is read or written
	isTouched bool // it is deleted or expired, with an unused result
	isPushed  bool // it is a list for signals
}

// change is the change of a key.
type change struct {
	effect Effect
	ttl    TTL
	value  []byte // of Set
}

// run is the state of one call of a script, in one world after the other.
type run struct {
	script *Script
	now    int64 // Unix time in ms

	keysTable, argvTable table
	keys                 []key // each once
	locals               []value
	values               []value // of lists under evaluation, each behind those of the enclosing one
	steps                int

	token    []byte // the argument compared with the value
	hasToken bool

	// of the present world
	command      string // the last one
	isUnused     bool   // its result
	commands     int
	db           int
	hasSignalled bool
	messages     []Message
	result       value
}

// step bounds the work of a call: each computed value costs one, and long strings more.
func (r *run) step(n int) {
	r.steps += n
	if r.steps > maxSteps {
		refuse("more than %d steps", maxSteps)
	}
}

func (r *run) eval(e expression) value {
	r.step(1)
	return e(r)
}

// all evaluates a list. Its values are there until the next one.
func (r *run) all(list []expression) []value {
	before := len(r.values)
	for _, e := range list {
		v := r.eval(e)
		r.values = append(r.values, v)
	}
	values := r.values[before:]
	r.values = r.values[:before]
	return values
}

// isToken reports whether a key holds the argument compared with its value. The first such
// comparison makes the argument the token; a second token would be a fourth world.
func (r *run) isToken(key int, arg []byte) bool {
	if !r.hasToken {
		r.token, r.hasToken = arg, true
	} else if !bytes.Equal(r.token, arg) {
		refuse("the value at the key is compared with two different arguments")
	}
	return r.keys[key].before == Owned
}

// in runs the script in a world where key i holds before(i).
func (r *run) in(before func(i int) Holding) {
	for i := range r.keys {
		k := &r.keys[i]
		k.before = before(i)
		k.exists, k.kept, k.value = k.before != Absent, k.before != Absent, nil
		k.ttl = TTL{Rest: k.exists}
	}
	clear(r.locals)
	r.commands, r.db, r.hasSignalled, r.messages, r.result = 0, -1, false, nil, value{}
	r.script.main(r)
}

// change returns the difference between before and now.
func (r *run) change(k *key) change {
	switch {
	case !k.exists && k.before != Absent:
		return change{effect: Delete}
	case !k.exists:
	case k.before == Absent:
		return change{Set, k.ttl, k.value}
	case !k.kept && k.before == Foreign:
		refuse("what another client holds is given a new value")
	case !k.kept && !bytes.Equal(k.value, r.token):
		refuse("the token is replaced by another value")
	case k.ttl != TTL{Rest: true}:
		return change{effect: Expire, ttl: k.ttl}
	}
	return change{}
}
