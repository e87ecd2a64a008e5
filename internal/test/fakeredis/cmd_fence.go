package fakeredis

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/test/fencenode"
)

// fenceKind is the kind of the key with a fleet's tokens. Its value is entry.fence.
const fenceKind = "zset"

// fenceCall is one call of a script of package fencing. fencenode.Node decides; the rest is its
// surroundings on a server: the set, the lock keys, and the commands that a test may forbid.
type fenceCall struct {
	*conn
	which      int
	keys, argv [][]byte
	node       *fencenode.Node
	me         fencing.Me
}

func (c *conn) runFence(which int, keys, argv [][]byte) {
	f := fenceCall{conn: c, which: which, keys: keys, argv: argv}
	switch which {
	case fenceAcquire:
		f.acquire()
	case fenceExtend:
		f.extend()
	case fenceMember:
		f.member()
	}
}

// acquire is acquire.lua.
func (f *fenceCall) acquire() {
	if !f.voting() {
		return
	}
	n := len(f.keys) - 1
	spare, lasts, granted := token(f.argv[2]), f.argv[4], true
	f.answers = f.answers[:0]
	if f.srv.full {
		f.node = cloneFence(f.node)
	}
	for i, key := range f.keys[1:] {
		last := token(lasts[i*fencing.LastDigits:][:fencing.LastDigits])
		block := fencing.Block{First: last - min(spare, last), Last: last}
		a := f.node.Acquire(f.me, f.lockName(key), block, f.table().get(key, f.now) != nil)
		if f.srv.full && (a.Code == fencing.OK || a.Code == fencing.Held && block.First > a.Token) { // SET is called
			f.scriptError(f.which, errFull)
			return
		}
		if a.Code == fencing.OK {
			common := f.argv[3]
			if len(common) == 0 {
				common = f.argv[n+i+5]
			}
			ttl, _ := parseInt(common)
			f.table().put(nil, key, f.argv[i+5], stringKind, f.now+ttl, f.now)
		}
		granted = granted && a.Code == fencing.OK
		f.answers = append(f.answers, a)
	}
	if granted {
		f.int(int64(n))
		return
	}
	f.array(n)
	for _, a := range f.answers {
		f.writeAnswer(a)
	}
}

// extend is extend.lua.
func (f *fenceCall) extend() {
	if !f.voting() {
		return
	}
	n := len(f.keys) - 1
	f.array(n)
	for i, key := range f.keys[1:] {
		e := f.table().get(key, f.now)
		holds := e != nil && e.kind == stringKind && bytes.Equal(e.value(), f.argv[i+1])
		if holds {
			f.lengthen(key, f.argv[n+i+1])
		}
		f.writeAnswer(f.node.Extend(f.me, holds))
	}
}

// voting reads the marker, and answers where the node has no vote.
func (f *fenceCall) voting() bool {
	if !f.open("zscore") {
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
	case f.barred("zrangebyscore"):
		return false
	}
	state := f.node.Extend(f.me, true)
	if state.Code == fencing.OK {
		return true
	}
	f.writeAnswer(state)
	return false
}

// open finds the set of the first key with a command, and reports whether this is allowed. A
// missing set is an empty one.
func (f *fenceCall) open(command string) bool {
	if f.barred(command) {
		return false
	}
	f.remember(f.keys)
	switch e := f.table().get(f.keys[0], f.now); {
	case e == nil:
		f.node = &fencenode.Node{}
	case e.kind != fenceKind:
		f.scriptError(f.which, errWrongType)
		return false
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
		return strings.Compare(t.Name, string(key))
	})
	if found {
		return f.node.Tokens[at].Name
	}
	return string(key)
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
		text := string(strconv.AppendUint(digits[:0], uint64(a.Token), 10)) + " " + a.Text
		if a.Age > 0 {
			text += " " + strconv.FormatInt(a.Age.Microseconds(), 10)
		}
		f.text(text)
	} else if a.Code == fencing.Held || a.Code == fencing.Stale || a.Code == fencing.Low {
		f.bulk(strconv.AppendUint(digits[:0], uint64(a.Token), 10))
	} else {
		f.text(a.Text)
	}
}

// barred reports whether a command is forbidden, and then answers with the error.
func (f *fenceCall) barred(command string) bool {
	if !f.srv.denied[command] {
		return false
	}
	f.scriptError(f.which, f.srv.accessError(f.srv.dialect.noScriptAccess, command))
	return true
}

// token reads a token, which may have zeros in front. An impossible one stays such.
func token(b []byte) fencing.Token {
	n, _ := parseInt(bytes.TrimLeft(b, "0"))
	return fencing.Token(min(max(n, 0), fencing.MaxToken+1))
}

func cloneFence(n *fencenode.Node) *fencenode.Node {
	c := *n
	c.Tokens = slices.Clone(n.Tokens)
	return &c
}
