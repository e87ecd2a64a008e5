package engine

import (
	"time"

	"github.com/redlock-go/redlock/internal/fleet"
	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
)

// link is one client's connection to one master, or the lack of it.
type link struct {
	fleet  *simFleet
	world  *world
	master *master
	index  int // of the node, as its client counts

	up       bool
	lost     bool  // the connection is dead; the client has yet to notice
	fault    error // to be taken down for this reason
	cause    error // why it is down
	pipe     *pipe
	owed     []*debt
	inbox    [][]byte // replies that have arrived and are not read
	progress time.Duration
	changed  time.Duration // when it last went up or down
	trouble  time.Duration // when it last did not answer promptly
	tardy    time.Duration // when it was last late at all
	stalled  time.Duration // until then the kernel takes nothing
	decoder  resp.Decoder

	number  uint64 // of the connection
	form    fleet.Form
	life    int           // of the master, when it was last met
	guarded time.Duration // until then, on the client's clock, it has no vote
}

// debt is the replies that a link owes for one flight.
type debt struct {
	flight *flight
	next   int // reply that comes next
	sent   int // commands that the kernel took
	since  time.Duration
}

// pipe is the network of one connection: in order, and it outlives the client's
// end, so that what was on its way may still arrive.
type pipe struct {
	link     *link
	segments []segment
	arrival  time.Duration // of the newest segment
	answer   time.Duration // of the newest reply
	broken   bool          // no reply gets through
	life     int           // of the master
	reach    [maxKeys]int  // what of the client's submissions has come through
}

type segment struct {
	at   time.Duration
	cmds []sentCommand
}

func newLink(f *simFleet, m *master, index int) *link {
	l := &link{fleet: f, world: f.world, master: m, index: index, cause: errDown}
	l.connect()
	return l
}

func (l *link) connect() {
	l.changed = l.world.now()
	l.up, l.lost, l.fault, l.owed, l.inbox = true, false, nil, nil, nil
	if l.pipe != nil {
		// The old connection was reset: what of it had not arrived by the time
		// the new one was greeted never will.
		l.pipe.segments = nil
	}
	l.pipe = &pipe{link: l, life: l.master.life}
	l.number++
	l.decoder.Reset()
	l.form = fleet.Form(0)
	if !l.master.forbids {
		l.form = l.master.form
	}
	if l.world.rules.guard && l.life != l.master.life {
		l.guarded = l.fleet.client.clock.Now() + longestHeld + quorum.Drift(longestHeld)
	}
	l.life = l.master.life
}

func (l *link) delay() time.Duration {
	d := l.world.between(20*time.Microsecond, 120*time.Microsecond) + l.master.slow
	if l.world.chance(2) {
		d += l.world.between(0, 10*time.Millisecond)
	}
	return d
}

func (l *link) send(fl *flight) {
	if !l.up {
		l.excuse(fl.cmds)
		fl.batch.Owner.Fail(l.index, 0, l.cause)
		return
	}
	if len(l.owed) == 0 {
		l.progress = l.world.now()
	}
	fl.waiting++
	l.owed = append(l.owed, &debt{flight: fl, since: l.world.now()})
	l.flush()
	l.bounded()
}

// maxOwed is how many batches beyond the in-flight window a node may owe of those
// that were sent while it had no quorum beside it. Nothing but its replies, and time,
// make room for the next: a batch leaves the window at its timeout, and renewals have short
// ones. A client that does not wait sends hundreds.
const maxOwed = 24

// bounded checks that a node is not sent more and more, and cut off in the end,
// because the others fail at once.
func (l *link) bounded() {
	f := l.fleet
	if !f.client.engine.quorum.Blocks(f.Away()) {
		f.quorate = l.world.now()
		return
	}
	owed, arrived := 0, len(l.inbox)
	for _, d := range l.owed {
		if arrived -= len(d.flight.cmds) - d.next; arrived < 0 && d.since > f.quorate && !d.flight.cmds[0].errand {
			owed++
		}
	}
	if owed > f.client.engine.window.size+maxOwed {
		l.world.check.failf("flood", "client %d: node %d is alone and owes %d batches", f.client.index, l.index, owed)
	}
}

// flush hands what the kernel takes to the network.
func (l *link) flush() {
	w := l.world
	if l.fault != nil {
		return
	}
	first := len(l.owed)
	for first > 0 && l.owed[first-1].sent < len(l.owed[first-1].flight.cmds) {
		first--
	}
	for _, d := range l.owed[first:] {
		all := len(d.flight.cmds)
		if l.lost && w.chance(50) {
			l.fault = errLost // the write fails
			return
		}
		to := all
		if l.stalled > w.now() {
			if d.sent > 0 || !w.chance(50) {
				return
			}
			if to = w.IntN(all); to == 0 {
				return
			}
		}
		if !l.lost {
			l.pipe.carry(d.flight.cmds[d.sent:to])
		}
		if d.sent = to; to < all {
			return
		}
	}
}

// stall keeps the kernel from taking more for a while.
func (l *link) stall(d time.Duration) {
	l.world.note("stall", l.fleet.client.index, l.index, int(d))
	l.stalled = max(l.stalled, l.world.now()+d)
	l.fleet.client.after(d, func() {
		if l.up && l.stalled <= l.world.now() {
			l.flush()
			l.fleet.arrived()
		}
	})
}

// carry brings commands to the master, in one segment or in two.
func (p *pipe) carry(cmds []sentCommand) {
	w := p.link.world
	for len(cmds) > 0 {
		n := len(cmds)
		if n > 1 && w.chance(20) {
			n = 1 + w.IntN(n-1)
		}
		p.arrival = max(p.arrival, w.now()+p.link.delay())
		p.segments = append(p.segments, segment{p.arrival, cmds[:n]})
		w.after(p.arrival-w.now(), p.pump)
		cmds = cmds[n:]
	}
}

// pump lets the master execute the commands that have arrived.
func (p *pipe) pump() {
	l, w := p.link, p.link.world
	for len(p.segments) > 0 && p.segments[0].at <= w.now() {
		m := l.master
		if m.hungUntil > w.now() {
			w.after(m.hungUntil-w.now(), p.pump)
			return
		}
		cmds := p.segments[0].cmds
		p.segments = p.segments[1:]
		if m.down {
			continue
		}
		replies := make([][]byte, len(cmds))
		for i := range cmds {
			at := i
			if w.rules.backwards {
				at = len(cmds) - 1 - i
			}
			replies[at] = m.execute(nil, p, &cmds[at])
		}
		if w.rules.crossed && len(replies) > 1 && w.chance(50) {
			replies[0], replies[1] = replies[1], replies[0]
		}
		if n := w.IntN(len(replies)); n > 0 && (w.chance(10) || m.partsUntil > w.now()) {
			p.reply(replies[:n])
			replies = replies[n:]
			p.answer += w.between(0, 2*time.Millisecond)
			if m.partsUntil > w.now() { // beyond deadlines, and sometimes for too long
				l.trouble, p.answer = w.now(), p.answer+w.between(0, 150*time.Millisecond)
			}
		}
		p.reply(replies)
	}
}

// reply brings replies to the client, after those that are on their way.
func (p *pipe) reply(replies [][]byte) {
	l, w := p.link, p.link.world
	p.answer = max(p.answer, w.now()+l.delay())
	if p.answer > w.now()+25*time.Millisecond {
		l.trouble = p.answer
	}
	w.after(p.answer-w.now(), func() {
		if !p.broken && l.pipe == p {
			l.inbox = append(l.inbox, replies...)
			l.fleet.arrived()
		}
	})
}

// tardyFrom is the length of one way from which it may be too long for a renewal.
const tardyFrom = 500 * time.Microsecond

// notice notes whether the link answers promptly at this moment.
func (l *link) notice() {
	m, now := l.master, l.world.now()
	if l.pipe.arrival > now+tardyFrom || l.pipe.answer > now+tardyFrom {
		l.tardy = now
	}
	if !l.up || l.lost || l.fault != nil || m.down || m.hungUntil > now || m.slow > 0 || l.stalled > now || m.partsUntil > now || l.pipe.arrival > now+15*time.Millisecond {
		l.trouble, l.tardy = max(l.trouble, now), now
	}
}

// lose breaks the connection: no reply comes any more. Of the commands on their
// way some still arrive, from the oldest on, and the rest never do.
func (l *link) lose() {
	if !l.up || l.lost {
		return
	}
	l.world.note("lose", l.fleet.client.index, l.index, 0)
	l.lost, l.pipe.broken = true, true
	keep := l.world.IntN(len(l.pipe.segments) + 1)
	l.pipe.segments = l.pipe.segments[:keep]
	l.fleet.arrived()
}

// receive reads what has arrived.
func (l *link) receive() {
	w := l.world
	if !l.up {
		return
	}
	l.flush()
	for len(l.inbox) > 0 && l.fault == nil {
		var v resp.Value
		n, err := l.decoder.Decode(l.inbox[0], &v)
		if err != nil || n != len(l.inbox[0]) || len(l.owed) == 0 {
			w.check.fail("wire", "the simulator's own reply is malformed")
			return
		}
		l.inbox = l.inbox[1:]
		l.progress = w.now()
		d := l.owed[0]
		i := d.next
		d.next++
		last := d.next == len(d.flight.cmds)
		if last {
			l.owed = l.owed[1:]
		}
		if err := d.flight.batch.Owner.Reply(l.index, i, &v); err != nil {
			w.note("misfit", l.fleet.client.index, l.index, i)
			l.fault = err
		}
		if last {
			l.fleet.done(d.flight)
		}
	}
	if l.lost && l.fault == nil {
		l.fault = errLost
	}
}

// takeDown fails what is owed and has the node dialled again.
func (l *link) takeDown() {
	w := l.world
	w.note("down", l.fleet.client.index, l.index, len(l.owed))
	if !l.lost {
		l.lose()
	}
	err, owed := l.fault, l.owed
	l.up, l.fault, l.owed, l.inbox = false, nil, nil, nil
	l.changed = w.now()
	l.cause = &unsentError{err}
	for _, d := range owed {
		l.excuse(d.flight.cmds[d.next:])
		if w.rules.loseFail {
			continue
		}
		if d.sent > 0 {
			d.flight.batch.Owner.Fail(l.index, d.next, err)
		} else {
			d.flight.batch.Owner.Fail(l.index, d.next, l.cause)
		}
		l.fleet.done(d.flight)
	}
	if !l.fleet.closed {
		l.fleet.client.after(w.between(0, 30*time.Millisecond), l.dial)
	}
}

// excuse notes what a client that is closed, and will not dial again, can't
// release any more.
func (l *link) excuse(cmds []sentCommand) {
	if !l.fleet.closed && !l.fleet.client.dead {
		return
	}
	for i := range cmds {
		for _, lock := range cmds[i].locks {
			l.world.check.lock(lock).excused[l.master.index] = true
		}
	}
}

// dial brings a new connection up as conn's dialers do: with the driver lock held,
// for as long as it takes.
func (l *link) dial() {
	w, c := l.world, l.fleet.client
	switch {
	case l.fleet.closed:
		return
	case l.master.down || l.master.hungUntil > w.now():
		c.after(w.between(time.Millisecond, 20*time.Millisecond), l.dial)
		return
	case !c.free():
		c.later(l.dial)
		return
	}
	l.master.scripts = both
	c.engine.DriverLock().Lock()
	c.busy++
	w.after(w.between(0, 200*time.Microsecond), func() {
		w.note("up", c.index, l.index, 0)
		if !l.fleet.closed {
			l.connect()
			if !w.rules.forgetful {
				c.engine.NodeUp(l.index)
			}
		}
		c.busy--
		if w.rules.rudeDialer {
			c.engine.driver.Unlock()
		} else {
			c.engine.DriverLock().Unlock()
		}
	})
}
