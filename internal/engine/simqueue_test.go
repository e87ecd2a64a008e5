package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/internal/command/queuemodel"
	"github.com/redlock-go/redlock/internal/fencing"
	"github.com/redlock-go/redlock/resp"
)

// telling is what a master has for those that wait: queues of processes, tickets and gates,
// and which connection is to be told of the next change of a key.
type telling struct {
	beside  map[string]*ticket // tickets and gates, by their names
	queues  map[string]*queuemodel.Queue
	tracked map[string][]*pipe
	loaded  bool  // the script of the queue
	author  *pipe // whose command runs

	refusesTracking, refusesScript bool
}

// ticket is a key beside a lock's, and its end on the master's clock.
type ticket struct {
	value   string
	expires int64
}

func newTelling() telling {
	return telling{beside: map[string]*ticket{}, queues: map[string]*queuemodel.Queue{}, tracked: map[string][]*pipe{}}
}

// words are the commands of a query.
func words(b *conn.Batch) (cmds []sentCommand) {
	var d resp.Decoder
	for buf := b.Buf; len(buf) > 0; {
		var v resp.Value
		n, err := d.Decode(buf, &v)
		if err != nil {
			panic(err)
		}
		cmd := sentCommand{errand: true}
		for it := v.Elements(); it.Next(); {
			cmd.words = append(cmd.words, string(it.Value().Bytes))
		}
		cmds, buf = append(cmds, cmd), buf[n:]
	}
	return cmds
}

var keyNames = [maxKeys]string{"key-0", "key-1", "key-2", "key-3", "key-4"}

// left is how long a key lives, in milliseconds, if it is there.
func (m *master) left(name string) (left int64, is bool) {
	if !strings.Contains(name, ":") {
		h := m.get(keyOf([]byte(name)))
		return h.expires - m.milliseconds(), h.lock != 0
	}
	t := m.beside[name]
	if t == nil {
		return 0, false
	}
	if m.milliseconds() > t.expires {
		delete(m.beside, name)
		m.changedBy(nil, name)
		return 0, false
	}
	return t.expires - m.milliseconds(), true
}

// register has a pipe told of the next change of a key. The master finds out late that
// one has expired.
func (m *master) register(p *pipe, name string) {
	if !slices.Contains(m.tracked[name], p) {
		m.tracked[name] = append(m.tracked[name], p)
	}
	if left, is := m.left(name); is {
		w := m.world
		w.after(time.Duration(left)*time.Millisecond+w.between(0, 100*time.Millisecond), func() { m.left(name) })
	}
}

// changed tells of a change by the command that runs.
func (m *master) changed(name string) { m.changedBy(m.author, name) }

func (m *master) changedBy(author *pipe, name string) {
	told := m.tracked[name]
	if len(told) == 0 {
		return
	}
	delete(m.tracked, name)
	for _, p := range told {
		if p != author || !p.noLoop {
			p.push(name)
		}
	}
}

// push tells a client of keys, or of all of them, for none.
func (p *pipe) push(names ...string) {
	w := p.link.world
	if p.broken || p.link.pipe != p || !p.tracks || p.eats {
		return
	}
	r := w.rules
	if r.losesPushes > 0 && w.chance(r.losesPushes) {
		w.note("push lost", p.link.fleet.client.index, p.link.index, 0)
		return
	}
	w.note("push", p.link.fleet.client.index, p.link.index, len(names))
	text := []byte(">2\r\n$10\r\ninvalidate\r\n")
	if len(names) == 0 {
		text = append(text, "_\r\n"...)
	} else {
		text = resp.AppendArray(text, len(names))
		for _, name := range names {
			text = resp.AppendBulkString(text, name)
		}
	}
	for range 1 + w.IntN(1+r.doubles) {
		if d := time.Duration(0); r.delaysPushes && w.chance(30) {
			d = w.between(0, 30*time.Millisecond)
			w.after(d, func() { p.reply([][]byte{text}) })
			continue
		}
		p.reply([][]byte{text})
	}
}

// query runs a command that is no vote.
func (m *master) query(dst []byte, p *pipe, cmd []string) []byte {
	caching := p.caching
	p.caching = false
	switch cmd[0] {
	case "PING":
		return resp.AppendSimple(dst, "PONG")
	case "CLIENT":
		switch {
		case m.refusesTracking:
			return resp.AppendError(dst, "NOPERM User x has no permissions to run the 'client|tracking' command")
		case cmd[1] == "TRACKING":
			p.tracks, p.noLoop = true, slices.Contains(cmd, "NOLOOP")
		case !p.tracks:
			return resp.AppendError(dst, "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
		default:
			p.caching = true
		}
	case "PTTL":
		left, is := m.left(cmd[1])
		if caching {
			m.register(p, cmd[1])
		}
		if !is {
			left = -2
		}
		return resp.AppendInteger(dst, left)
	case "SET":
		_, is := m.left(cmd[1])
		if is && cmd[3] == "NX" || !is && cmd[3] == "XX" {
			return resp.AppendNullBulk(dst)
		}
		ms, _ := strconv.ParseInt(cmd[len(cmd)-1], 10, 64)
		m.setBeside(cmd[1], cmd[2], ms)
	case "DEL":
		m.deleteBeside(cmd[1])
		return resp.AppendInteger(dst, 1)
	case "SCRIPT":
		if cmd[2] == fencing.MemberScript {
			m.fence.member = true
		} else {
			m.loaded = true
		}
		return resp.AppendBulkString(dst, "sha")
	case "EVALSHA":
		switch {
		case cmd[1] == fencing.MemberSHA1:
			return m.memberCall(dst, cmd)
		case m.refusesScript:
			return resp.AppendError(dst, "NOPERM User x has no permissions to run the 'evalsha' command")
		case !m.loaded:
			return resp.AppendError(dst, "NOSCRIPT No matching script. Please use EVAL.")
		}
		return m.runQueue(dst, cmd)
	default:
		m.world.check.failf("wire", "a master was sent %q", cmd)
	}
	return resp.AppendSimple(dst, "OK")
}

// runQueue is EVALSHA QueueSHA1 2 queue ticket id way alone first behind.
func (m *master) runQueue(dst []byte, cmd []string) []byte {
	if cmd[1] != command.QueueSHA1 || len(cmd) != 10 {
		m.world.check.failf("wire", "a master was sent %q", cmd)
	}
	q := m.queues[cmd[3]]
	if q == nil {
		q = new(queuemodel.Queue)
		m.queues[cmd[3]] = q
	}
	var ms [3]int64
	for i := range ms {
		ms[i], _ = strconv.ParseInt(cmd[7+i], 10, 64)
	}
	id := cmd[5]
	answer := q.Run(command.Way(cmd[6]), id, queuemodel.Lifetimes{Alone: ms[0], First: ms[1], Behind: ms[2]},
		tickets{m, strings.TrimSuffix(cmd[4], id)})
	dst = resp.AppendArray(dst, len(answer))
	for _, n := range answer {
		dst = resp.AppendInteger(dst, n)
	}
	return dst
}

// tickets is the tickets of one queue.
type tickets struct {
	master *master
	prefix string
}

func (t tickets) Left(id string) (int64, bool) { return t.master.left(t.prefix + id) }
func (t tickets) Set(id string, left int64)    { t.master.setBeside(t.prefix+id, "", left) }
func (t tickets) Delete(id string)             { t.master.deleteBeside(t.prefix + id) }

func (t tickets) Expire(id string, left int64) {
	m, name := t.master, t.prefix+id
	m.beside[name].expires = m.milliseconds() + left
	if !m.world.rules.ringsNone {
		m.changed(name)
	}
}

func (m *master) setBeside(name, value string, ms int64) {
	m.beside[name] = &ticket{value, m.milliseconds() + ms}
	m.changed(name)
}

func (m *master) deleteBeside(name string) {
	if m.beside[name] != nil {
		delete(m.beside, name)
		m.changed(name)
	}
}

// forgetTold is what a restart does to all this: connections end, and what is not a lock
// may be forgotten.
func (m *master) forgetTold() {
	m.tracked, m.loaded = map[string][]*pipe{}, false
	if m.world.rules.lines && m.world.chance(50) {
		m.beside, m.queues = map[string]*ticket{}, map[string]*queuemodel.Queue{}
	}
}

// faults of pushes

// forge has a client told of a key that has not changed, or of all.
func forge(w *world) {
	l := w.anyLink()
	if l.pipe == nil || l.fleet.client.lines == nil {
		return
	}
	name := fmt.Sprintf("key-%d", w.IntN(w.check.keys))
	switch w.IntN(4) {
	case 0:
		l.pipe.push()
		return
	case 1:
		name += ":redlock:ticket:" + l.fleet.client.lines.id
	case 2:
		name += ":redlock:gate"
	}
	for range 1 + w.IntN(20) {
		l.pipe.push(name)
	}
}

// overflow has a master forget what is tracked, and tell so: FLUSHALL does it, or a table
// that is full.
func overflow(w *world) {
	m := w.anyMaster()
	w.note("overflow", m.index, 0, 0)
	m.tracked = map[string][]*pipe{}
	for _, c := range w.clients {
		for _, l := range c.fleet.links {
			if l.master == m && l.up {
				l.pipe.push()
			}
		}
	}
}

// unload has a master forget the script of the queue.
func unload(w *world) { w.anyMaster().loaded = false }

// refuse takes a master's permissions to track, or to run scripts of queues, or gives them
// back.
func refuse(w *world) {
	m := w.anyMaster()
	m.refusesTracking, m.refusesScript = w.chance(30), w.chance(30)
	w.note("refuse", m.index, 0, 0)
}

// eat puts a proxy before a master that lets no push through to one client, until the
// connection ends.
func eat(w *world) {
	l := w.anyLink()
	l.pipe.eats = true
}
