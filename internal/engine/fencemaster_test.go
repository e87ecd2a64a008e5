package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/fencing"
	"github.com/redlock-go/redlock/resp"
)

const (
	fenceSet   = "fence"
	fenceFleet = "fleet"
	wallBase   = 1_800_000_000_000_000 // µs, of the worlds' beginning
)

// fenceNode is what a master has for fenced clients. It keeps one value for the only set.
type fenceNode struct {
	fencing.Node
	wall    time.Duration // how far its clock is off
	saved   fencing.Node  // that a restart may bring back
	member  bool          // it knows the member script
	raised  [maxKeys]raised
	floored time.Duration // when its floor last changed
}

// raised is the last two attempts that have raised F of a key at a master.
type raised struct {
	last, before time.Duration
	lock         int
}

// fencedCall is what a fenced script is told beside keys, tokens and TTLs.
type fencedCall struct {
	me     fencing.Me
	blocks []fencing.Block
}

func meOf(text string) fencing.Me {
	fleet, run, _ := strings.Cut(text, ":")
	return fencing.Me{Fleet: fleet, Run: run}
}

// readFencedCall reads what is before the operands of a call: EVALSHA sha n set key… me.
func readFencedCall(words []string) (*fencedCall, error) {
	n, _ := strconv.Atoi(words[2])
	if words[3] != fenceSet || n < 2 {
		return nil, fmt.Errorf("%q is no call of a script of fencing", words)
	}
	return &fencedCall{me: meOf(words[3+n])}, nil
}

func (m *master) run() string { return fmt.Sprintf("run%d.%d", m.index, m.life) }

// micros is the master's TIME.
func (m *master) micros() uint64 {
	return wallBase + uint64((m.world.now()+m.fence.wall)/time.Microsecond)
}

// fenced is acquire.lua and extend.lua.
func (m *master) fenced(dst []byte, p *pipe, cmd *sentCommand) []byte {
	w := m.world
	if !m.scripts[cmd.script()] {
		if cmd.retried {
			cmd.blame(m, cmd.locks...)
		}
		return resp.AppendError(dst, "NOSCRIPT No matching script. Please use EVAL.")
	}
	w.check.order(m, p, cmd)
	dst = resp.AppendArray(dst, len(cmd.keys))
	for i, key := range cmd.keys {
		h := m.get(key)
		if w.rules.votesAlways {
			m.fence.Marker = fencing.Marker{Phase: fencing.Voting, Me: cmd.fence.me}
		}
		var a fencing.Answer
		if cmd.kind == Extend {
			if a = m.fence.Extend(cmd.fence.me, h.lock == cmd.locks[i]); a.Code == fencing.OK {
				m.script(cmd, i, h)
			}
		} else if a = m.fence.Acquire(cmd.fence.me, fencing.Acquire{
			Name: keyNames[key], Block: cmd.fence.blocks[i], Exists: h.lock != 0,
		}); a.Code == fencing.OK {
			*h = held{cmd.locks[i], m.milliseconds() + cmd.ttls[i]}
			m.fence.raised[key] = raised{w.now(), m.fence.raised[key].last, cmd.locks[i]}
			w.check.grantedOne(m, cmd.locks[i], h.expires)
		}
		if a.Code == fencing.Amnesia || a.Code == fencing.Foreign || a.Code == fencing.Gone || a.Code == fencing.Stale {
			cmd.blame(m, cmd.locks[i])
		}
		w.note("fenced", m.index, cmd.locks[i], int(a.Code))
		dst = appendAnswer(dst, a, false)
	}
	return dst
}

// memberCall is member.lua: EVALSHA sha 1 set verb me argument…
func (m *master) memberCall(dst []byte, words []string) []byte {
	if !m.fence.member {
		return resp.AppendError(dst, "NOSCRIPT No matching script. Please use EVAL.")
	}
	me, args := meOf(words[5]), words[6:]
	var a fencing.Answer
	switch fencing.Verb(words[4]) {
	case fencing.NoticeVerb:
		a = m.fence.Notice(me, args[0], m.micros())
	case fencing.ReadVerb:
		a = m.fence.Read(me)
	case fencing.RejoinVerb:
		floor, _ := strconv.ParseUint(args[1], 10, 64)
		if a = m.fence.Rejoin(me, args[0], floor); a.Code == fencing.OK {
			m.fence.floored = m.world.now()
			m.world.check.fences.rejoined++
		}
	}
	m.world.note(words[4], m.index, int(a.Code), int(a.Token))
	return appendAnswer(dst, a, words[4] == string(fencing.ReadVerb))
}

func appendAnswer(dst []byte, a fencing.Answer, reads bool) []byte {
	text := a.Text
	switch {
	case a.Code == fencing.OK && !reads, a.Code == fencing.Gone:
		return resp.AppendInteger(dst, int64(a.Code))
	case a.Code <= fencing.Stale:
		text = strconv.FormatUint(a.Token, 10)
	}
	dst = resp.AppendArray(dst, 2)
	dst = resp.AppendInteger(dst, int64(a.Code))
	return resp.AppendBulkString(dst, text)
}

func cloneNode(n fencing.Node) fencing.Node {
	n.Tokens = slices.Clone(n.Tokens)
	return n
}

// restartFence is what a restart does to what a master has: it keeps all of it, or less,
// or has an older one. Its run_id is another in any case.
func (m *master) restartFence() {
	w := m.world
	switch n := w.IntN(10); {
	case n < 5:
		m.fence.Node = fencing.Node{}
	case n < 8:
		m.fence.Node = cloneNode(m.fence.saved)
	}
	m.fence.floored, m.fence.member = w.now(), false
	if w.chance(60) {
		m.keys = [maxKeys]held{}
	}
}

// evictSet has a master lose its tokens. It keeps the locks.
func evictSet(w *world) {
	m := w.anyMaster()
	if w.tooMany() {
		return
	}
	w.note("evict set", m.index, 0, 0)
	m.fence.Node = fencing.Node{}
	m.fence.floored = w.now()
}

// flushKeys has a master lose its locks too, where no plain client counts on them.
func flushKeys(w *world) {
	m := w.anyMaster()
	if w.tooMany() {
		return
	}
	for _, c := range w.clients {
		if c.fence == nil {
			return
		}
	}
	w.note("flush keys", m.index, 0, 0)
	m.fence.Node, m.keys = fencing.Node{}, [maxKeys]held{}
	m.fence.floored = w.now()
}

// tear keeps a client's requests from most nodes for a while, and has one of the others lose
// its tokens meanwhile: the one whose vote they may still make a quorum with.
func tear(w *world) {
	f := w.clients[w.IntN(len(w.clients))].fleet
	nodes := w.Perm(len(f.links))
	lost := f.links[nodes[0]].master
	for i, node := range nodes[1:] {
		d := w.between(500*time.Microsecond, 8*time.Millisecond)
		if i%2 == 1 {
			d *= 8
		}
		f.links[node].stall(d)
	}
	w.after(w.between(100*time.Microsecond, 2*time.Millisecond), func() {
		if !w.tooMany() {
			w.note("evict set", lost.index, 0, 0)
			lost.fence.Node, lost.fence.floored = fencing.Node{}, w.now()
		}
	})
}

// step has a client's clock jump.
func step(w *world) {
	if f := w.clients[w.IntN(len(w.clients))].fence; f != nil {
		f.wall += w.between(-time.Second, time.Second)
	}
}

// save has a master write its file, which a restart may bring back.
func save(w *world) {
	m := w.anyMaster()
	w.note("save", m.index, 0, 0)
	m.fence.saved = cloneNode(m.fence.Node)
}

// collect has a master forget tokens.
func collect(w *world) {
	m := w.anyMaster()
	age := uint64(w.between(0, 200*time.Millisecond) / time.Microsecond)
	w.note("collect", m.index, 0, 0)
	m.fence.Collect(m.fence.Marker.Me, age, m.micros())
	m.fence.floored = w.now()
}

// forgotten is how many masters have no vote in fenced acquires.
func (w *world) forgotten() (n int) {
	for _, m := range w.masters {
		if !m.votesNow() {
			n++
		}
	}
	return n
}

// tooMany says, most often, whether one more would be too many for clients to bring back.
func (w *world) tooMany() bool { return w.forgotten() >= (len(w.masters)-1)/2 && w.chance(90) }

// initialize is an operator who has seen that too many nodes have forgotten: a client
// brings all of them back, with a floor above the tokens that the resources have seen.
func initialize(w *world) {
	c := w.clients[w.IntN(len(w.clients))]
	if c.fence == nil || c.dead || w.forgotten() <= c.fence.fleet.Nodes-c.fence.readers() {
		return
	}
	w.note("initialize", c.index, 0, 0)
	c.fence.medic.initialize()
}
