package fakeredis

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/test/fencenode"
)

// fenceKind is the kind of the key with a fleet's tokens. Its value is entry.fence.
const fenceKind = "zset"

// fenceCall is one call of a script of package fencing. fencenode.Node decides; the rest is its
// surroundings on a server: arguments, the access list, the lock keys.
//
// A call that fails after its first write keeps the writes before, as in Redis, with one exception:
// a marker is replaced or not, where a real server may remove the old one and fail at the new.
type fenceCall struct {
	*conn
	which      int
	keys, argv [][]byte
	start      int // of the reply
	node       *fencenode.Node
	me         fencing.Me
}

func (c *conn) runFence(which int, keys, argv [][]byte) {
	f := fenceCall{conn: c, which: which, keys: keys, argv: argv, start: len(c.out)}
	switch which {
	case fenceAcquire:
		f.acquire()
	case fenceExtend:
		f.extend()
	case fenceMember:
		f.member()
	}
}

// acquire is acquire.lua. It decides on a copy of the node where a command of the script may fail:
// the final record of the script is then missing.
func (f *fenceCall) acquire() {
	if !f.voting() {
		return
	}
	const (
		compare = "first < 1"
		set     = "'SET'"
	)
	if f.barred("zrevrange", "'ZREVRANGE'") {
		return
	}
	node, won := f.node, false
	if f.srv.replica || f.srv.denied["set"] || f.srv.denied["zadd"] || !f.acquireFits() {
		node = cloneFence(node)
	}
	f.array(len(f.keys) - 1)
	for i, key := range f.keys[1:] {
		first, ok := luaNumber(f.arg(4*i + 1))
		last, lastOK := luaNumber(f.arg(4*i + 2))
		if !ok || first >= 1 && !lastOK {
			f.raise(compare, "attempt to compare nil with number")
			return
		}
		e := f.table().get(key, f.now)
		a := node.Acquire(f.me, f.lockName(key), fencing.Block{First: token(first), Last: token(last)}, e != nil)
		if a.Code == fencing.Held && e.kind != stringKind && token(first) <= a.Token {
			a = node.Acquire(f.me, f.lockName(key), fencing.Block{First: token(first), Last: token(last)}, false) // MGET shows strings alone
		}
		if a.Code == fencing.OK {
			nonce, ttl := f.arg(4*i+3), f.arg(4*i+4)
			if nonce == nil || ttl == nil {
				f.failAt(set, f.srv.dialect.notString)
				return
			}
			if f.barred("set", set) {
				return
			}
			o := setOptions{unit: inMillis, count: ttl}
			expires, text := o.expires(f.now)
			if text != "" {
				f.failAt(set, text)
				return
			}
			f.table().put(nil, key, nonce, stringKind, expires, f.now)
			won = true
		} else if a.Code != fencing.Invalid && token(first) <= a.Token && f.barred("mget", "'MGET'") {
			return
		}
		f.writeAnswer(a)
	}
	if won && f.barred("zadd", "'ZADD'") {
		return
	}
	*f.node = *node
}

// acquireFits reports whether each key of an acquire has its arguments.
func (f *fenceCall) acquireFits() bool {
	for i := range f.keys[1:] {
		ttl, ok := parseInt(f.arg(4*i + 4))
		if !ok || ttl <= 0 || f.arg(4*i+3) == nil {
			return false
		}
	}
	return true
}

// extend is extend.lua.
func (f *fenceCall) extend() {
	if !f.voting() {
		return
	}
	n := len(f.keys) - 1
	f.array(n)
	for i, key := range f.keys[1:] {
		if f.barred("mget", "'MGET'") {
			return
		}
		e, nonce := f.table().get(key, f.now), f.arg(i+1)
		holds := e != nil && e.kind == stringKind && nonce != nil && bytes.Equal(e.value(), nonce)
		if holds {
			const at = "'PEXPIRE'"
			ttl := f.arg(n + i + 1)
			if ttl == nil {
				f.failAt(at, f.srv.dialect.notString)
				return
			}
			if f.barred("pttl", "'PTTL'") || f.barred("pexpire", at) {
				return
			}
			if text := f.lengthen(key, ttl); text != "" {
				f.failAt(at, text)
				return
			}
		}
		f.writeAnswer(f.node.Extend(f.me, holds))
	}
}

// voting reads the marker, and answers for all keys where the node has no vote.
func (f *fenceCall) voting() bool {
	if len(f.argv) == 0 {
		f.raise("'ZSCORE'", "attempt to concatenate local 'me' (a nil value)")
		return false
	}
	if !f.open("zscore", "'ZSCORE'") {
		return false
	}
	f.identify(f.argv[0])
	m := &f.node.Marker
	switch known := f.argv[len(f.argv)-1]; {
	case m.Phase == fencing.Voting && m.Nonce == "" && m.Me == f.me:
		return true
	case m.Phase == fencing.Voting && m.String() == string(known):
		f.me = m.Me // as the script takes the client's word for this
		return true
	case f.barred("zrangebyscore", "'ZRANGEBYSCORE'"):
		return false
	}
	state := f.node.Extend(f.me, true)
	if state.Code == fencing.OK {
		return true
	}
	f.array(len(f.keys) - 1)
	for range f.keys[1:] {
		f.writeAnswer(state)
	}
	return false
}

// open finds the set of the first key with a command, and reports whether this is allowed. A
// missing set is an empty one.
func (f *fenceCall) open(command, at string) bool {
	if len(f.keys) == 0 {
		f.failAt(at, f.srv.dialect.notString)
		return false
	}
	if f.barred(command, at) {
		return false
	}
	f.remember(f.keys)
	e := f.table().get(f.keys[0], f.now)
	switch {
	case e == nil:
		f.node = &fencenode.Node{}
	case e.kind != fenceKind:
		f.failAt(at, errWrongType)
		return false
	case e.fence == nil: // planted
		e.fence = &fencenode.Node{}
		fallthrough
	default:
		f.node = e.fence
	}
	return true
}

// identify reads "<fleet>:<run>". The text of a node that knows the client is reused.
func (f *fenceCall) identify(text []byte) {
	fleet, run, _ := bytes.Cut(text, []byte(":"))
	if known := f.node.Marker.Me; string(fleet) == known.Fleet && string(run) == known.Run {
		f.me = known
	} else {
		f.me = fencing.Me{Fleet: string(fleet), Run: string(run)}
	}
}

// lockName is the name of a lock key: the node's own text if it knows the key.
func (f *fenceCall) lockName(key []byte) string {
	at, found := slices.BinarySearchFunc(f.node.Tokens, key, func(t fencenode.KeyToken, key []byte) int {
		switch {
		case t.Name < string(key):
			return -1
		case t.Name > string(key):
			return 1
		}
		return 0
	})
	if found {
		return f.node.Tokens[at].Name
	}
	return string(key)
}

// arg is an argument, or nil.
func (f *fenceCall) arg(i int) []byte {
	if i < len(f.argv) {
		return f.argv[i]
	}
	return nil
}

// micros is the TIME of the server.
func (f *fenceCall) micros() uint64 { return uint64(max(f.srv.clock().UnixMicro(), 0)) }

// writeAnswer answers for one lock key.
func (f *fenceCall) writeAnswer(a fencing.Answer) {
	if a.Code == fencing.OK || a.Code == fencing.Gone {
		f.int(int64(a.Code))
		return
	}
	f.sayWhole(a, false)
}

// sayWhole answers a code and its text: if it shows the node, the token and the marker.
func (f *fenceCall) sayWhole(a fencing.Answer, shows bool) {
	f.array(2)
	f.int(int64(a.Code))
	var digits [20]byte
	if shows {
		f.text(string(strconv.AppendUint(digits[:0], uint64(a.Token), 10)) + " " + a.Text)
	} else if a.Code == fencing.Held || a.Code == fencing.Stale || a.Code == fencing.Low {
		f.bulk(strconv.AppendUint(digits[:0], uint64(a.Token), 10))
	} else {
		f.text(a.Text)
	}
}

// scriptWrites are the commands in the scripts refused by a replica.
var scriptWrites = map[string]bool{"zadd": true, "zremrangebyscore": true, "set": true, "pexpire": true}

// barred reports whether a command is forbidden, and then answers with the error. at is a part of
// the calling line of the script.
func (f *fenceCall) barred(command, at string) bool {
	switch {
	case f.srv.denied[command]:
		f.failAt(at, f.srv.accessError(f.srv.dialect.noScriptAccess, command))
	case f.srv.replica && scriptWrites[command]:
		f.failAt(at, errReadOnly)
	default:
		return false
	}
	return true
}

// failAt answers an error of a command in the script, instead of all answers.
func (f *fenceCall) failAt(at, text string) {
	f.out = f.out[:f.start]
	f.scriptError(f.which, f.line(at), text)
}

// raise answers an error of the script itself.
func (f *fenceCall) raise(at, text string) {
	f.failAt(at, "ERR user_script:"+strconv.Itoa(f.line(at))+": "+text)
}

// line is the first line of the script with a text.
func (f *fenceCall) line(at string) int {
	before, _, found := strings.Cut(texts[f.which], at)
	if !found {
		panic("fakeredis: the script has no " + at)
	}
	return 1 + strings.Count(before, "\n")
}

// luaNumber reads a number as tonumber does, but for spaces and other bases.
func luaNumber(b []byte) (x float64, ok bool) {
	if n, ok := parseInt(b); ok { // without an allocation
		return float64(n), true
	}
	x, err := strconv.ParseFloat(string(b), 64)
	return x, err == nil && !math.IsNaN(x)
}

// token is a number as a token. An impossible one stays such.
func token(x float64) fencing.Token {
	return fencing.Token(min(max(x, 0), fencing.MaxToken+1))
}

func cloneFence(n *fencenode.Node) *fencenode.Node {
	c := *n
	c.Tokens = slices.Clone(n.Tokens)
	return &c
}
