package engine

import (
	"time"

	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/internal/fleet"
	"github.com/redlock-go/redlock/resp"
)

const (
	maxKeys    = 3
	maxMasters = 7
	nonsense   = 7 // a reply that fits no command
)

// master is one node: keys with a TTL on its own clock, and a script cache.
type master struct {
	world   *world
	index   int
	clock   *skewed
	keys    [maxKeys]held
	scripts loaded

	form    fleet.Form
	forbids bool // refuses the native commands
	life    int  // counts restarts

	barred [8][maxKeys]barred // by client
	sore   bool               // it refuses the next command too

	down      bool
	hungUntil time.Duration
	slow      time.Duration

	partsUntil time.Duration // until then its replies come in parts

	mood      string
	moodUntil time.Duration
	nonsense  int // replies of the wrong type still to be given
}

// loaded are the scripts that a master knows, by the kind of operation.
type loaded [Release + 1]bool

var both = loaded{Extend: true, Release: true}

// held is a key's value, the number of a lock or 0, and its end.
type held struct {
	lock    int
	expires int64 // milliseconds on the master's clock
}

func newMaster(w *world, index int) *master {
	m := &master{world: w, index: index, clock: w.newClock(), scripts: both}
	if w.chance(50) {
		m.form = every[w.IntN(len(every))]
	}
	return m
}

func (m *master) milliseconds() int64 { return int64(m.clock.Now() / time.Millisecond) }

// get returns the key unless it has expired. As in Redis, a key lives through
// the whole of its last millisecond.
func (m *master) get(key int) *held {
	h := &m.keys[key]
	if h.lock != 0 && m.milliseconds() > h.expires {
		*h = held{}
	}
	return h
}

// end is when a key that expires at that reading is gone, in true time.
func (m *master) end(expires int64) time.Duration {
	return m.clock.truth(time.Duration(expires+1) * time.Millisecond)
}

// execute runs one command that came through a pipe and appends its reply.
func (m *master) execute(dst []byte, p *pipe, cmd *sentCommand) []byte {
	w := m.world
	w.note("exec", m.index, cmd.lockOf(0), int(cmd.kind))
	if m.nonsense > 0 {
		m.nonsense--
		cmd.excuse(m)
		cmd.blame(m, cmd.locks...)
		return appendInteger(dst, nonsense)
	}
	if w.now() < m.moodUntil && (m.mood[0] != 'O' || cmd.kind == Acquire || cmd.kind == Extend && cmd.native) {
		cmd.excuse(m)
		cmd.blame(m, cmd.locks...)
		return appendError(dst, m.mood)
	}
	if text := m.bars(p, cmd); text != "" {
		return appendError(dst, text)
	}
	switch {
	case cmd.load:
		m.scripts[cmd.kind] = true
		return resp.AppendBulkString(dst, "sha")
	case cmd.kind == Acquire:
		w.check.order(m, p, cmd)
		h := m.get(cmd.keys[0])
		if h.lock != 0 && !(w.rules.liar && w.chance(20)) {
			return appendNull(dst)
		}
		*h = held{cmd.locks[0], m.milliseconds() + cmd.ttls[0]}
		if w.rules.eternal {
			h.expires = 1 << 40
		}
		w.check.granted(m, cmd, h.expires)
		return appendSimple(dst, "OK")
	case cmd.native:
		return m.native(dst, p, cmd)
	case !m.scripts[cmd.kind]:
		if cmd.retried {
			cmd.excuse(m)
			cmd.blame(m, cmd.locks...)
		}
		return appendError(dst, "NOSCRIPT No matching script. Please use EVAL.")
	}
	w.check.order(m, p, cmd)
	dst = resp.AppendArray(dst, len(cmd.keys))
	for i, key := range cmd.keys {
		dst = appendInteger(dst, m.script(cmd, i, m.get(key)))
	}
	return dst
}

// bars returns the error for a command of which the access list forbids a key, or
// "". Nothing of the command is done then. Only commands about such a key are
// refused for a reason of their own.
func (m *master) bars(p *pipe, cmd *sentCommand) string {
	barred := &m.barred[p.link.fleet.client.index]
	found := false
	for i, key := range cmd.keys {
		if barred[key].forbids(cmd.kind) {
			found = true
			one := sentCommand{kind: cmd.kind, locks: cmd.locks[i : i+1], world: m.world}
			one.blame(m, one.locks...)
			one.excuse(m)
		}
	}
	if m.world.rules.contagious && found {
		m.sore = true
		return barredKey
	}
	switch {
	case m.sore && len(cmd.keys) > 0:
		m.sore = false
		return barredKey
	case !found:
		return ""
	case cmd.native || cmd.kind == Acquire || command.Form(m.form).IsScript(Release):
		return barredKey
	}
	return "ERR ACL failure in script: No permissions to access a key script: f_x, on @user_script:2."
}

// barred are the commands that an access list forbids on a key.
type barred struct{ set, release, extend bool }

func (b barred) forbids(k Kind) bool {
	return b.set && k == Acquire || b.release && k == Release || b.extend && k == Extend
}

const barredKey = "NOPERM No permissions to access a key"

// native runs a release or an extend that is a native command.
func (m *master) native(dst []byte, p *pipe, cmd *sentCommand) []byte {
	if m.forbids {
		if cmd.paid {
			cmd.excuse(m)
		}
		return appendError(dst, "NOPERM User x has no permissions to run the 'delifeq' command")
	}
	m.world.check.order(m, p, cmd)
	done := m.script(cmd, 0, m.get(cmd.keys[0]))
	switch {
	case cmd.kind == Release:
		return appendInteger(dst, done)
	case done == 1:
		return appendSimple(dst, "OK")
	}
	return appendNull(dst)
}

// script does to one key the work of either script.
func (m *master) script(cmd *sentCommand, i int, h *held) int64 {
	w := m.world
	mine := h.lock == cmd.locks[i]
	switch {
	case cmd.kind == Release && (mine || w.rules.blindRelease && h.lock != 0):
		if w.rules.noCleanup && w.chance(30) {
			return 1
		}
		if mine {
			w.check.released(m, cmd.locks[i])
		}
		*h = held{}
		return 1
	case cmd.kind == Extend && (mine || w.rules.blindExtend && h.lock != 0):
		h.expires = max(h.expires, m.milliseconds()+cmd.ttls[i])
		if mine {
			w.check.extended(m, cmd.locks[i], h.expires)
		}
		return 1
	}
	return 0
}

// restart ends every connection and forgets the scripts; the keys stay, as with
// appendfsync always, unless the rules say otherwise.
func (m *master) restart(d time.Duration) {
	w := m.world
	w.note("restart", m.index, int(d), 0)
	m.scripts, m.down = loaded{}, true
	m.life++
	if w.rules.forgets {
		m.keys = [maxKeys]held{}
	}
	for _, c := range w.clients {
		for _, l := range c.fleet.links {
			if l.master == m {
				l.lose()
			}
		}
	}
	w.after(d, func() { m.down = false })
}

// heal ends all that is wrong with a master.
func (m *master) heal() {
	m.down, m.slow, m.moodUntil, m.hungUntil, m.nonsense = false, 0, 0, m.world.now(), 0
	m.partsUntil, m.barred = 0, [8][maxKeys]barred{}
}
