package engine

import (
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/fleet"
	"github.com/redlock-go/redlock/quorum"
)

// simFleet is one client's Fleet in a world.
type simFleet struct {
	world   *world
	client  *client
	links   []*link
	flights map[*fleet.Batch]*flight
	armed   bool
	closed  bool
	blocks  bool // Sweep can block, in world time
	longest time.Duration
	woken   bool

	reading bool // the reader is about to have its turn

	onSend  []func()      // to happen in the next Send
	onSweep []func()      // to happen in the next Sweep
	quorate time.Duration // when a batch was last sent to a quorum
}

// flight is a batch from Send to Done.
type flight struct {
	batch   *fleet.Batch
	cmds    []sentCommand
	sum     uint64
	waiting int
}

var (
	sumSeed  = maphash.MakeSeed()
	errLost  = errors.New("connection lost")
	errStall = errors.New("node is silent")
	errDown  = &unsentError{errors.New("node is down")}
)

type unsentError struct{ cause error }

func (e *unsentError) Error() string   { return e.cause.Error() }
func (e *unsentError) Unwrap() []error { return []error{e.cause, conn.ErrNotSent} }

func newSimFleet(c *client) *simFleet {
	f := &simFleet{world: c.world, client: c, flights: map[*fleet.Batch]*flight{}, blocks: c.world.chance(50)}
	masters := c.world.masters
	if c.world.rules.halves { // three of five, only the middle one of which all have
		masters = masters[2*(c.index%2):][:3]
	}
	for i, m := range masters {
		f.links = append(f.links, newLink(f, m, i))
	}
	return f
}

func (f *simFleet) Len() int       { return len(f.links) }
func (f *simFleet) CanBlock() bool { return f.blocks }
func (f *simFleet) Wait() bool     { panic("there is no reader goroutine") }

func (f *simFleet) Forms() (ds []fleet.Form) {
	for _, l := range f.links {
		if l.up && !slices.Contains(ds, l.form) {
			ds = append(ds, l.form)
		}
	}
	return ds
}

func (f *simFleet) Away() (nodes quorum.Set) {
	for i, l := range f.links {
		if !l.up {
			nodes |= 1 << i
		}
	}
	return nodes
}

func (f *simFleet) Fault(node int) error {
	if l := f.links[node]; !l.up {
		return l.cause
	}
	return nil
}

func (f *simFleet) Node(node int) fleet.Node {
	return fleet.Node{Form: f.links[node].form, Connection: f.links[node].number}
}

func (f *simFleet) SetForm(node int, form fleet.Form) {
	f.world.note("form", f.client.index, node, int(form))
	f.links[node].form = form
}

func (f *simFleet) NoteTTL(d time.Duration) { f.longest = max(f.longest, d) }

// Quarantined is as strict as a client that knows the longest TTL of all.
func (f *simFleet) Quarantined() (nodes quorum.Set) {
	for i, l := range f.links {
		if f.client.clock.Now() < l.guarded {
			nodes |= 1 << i
		}
	}
	return nodes
}

// takeOff begins a flight.
func (f *simFleet) takeOff(b *fleet.Batch) *flight {
	cmds, err := parse(f.world, b)
	if err != nil {
		f.world.check.fail("wire", err.Error())
	}
	if f.flights[b] != nil {
		f.world.check.fail("leak", "a batch was sent again before it was done")
	}
	fl := &flight{b, cmds, maphash.Bytes(sumSeed, b.Buf), 1}
	f.flights[b] = fl
	return fl
}

func (f *simFleet) done(fl *flight) {
	if fl.waiting--; fl.waiting > 0 {
		return
	}
	delete(f.flights, fl.batch)
	if maphash.Bytes(sumSeed, fl.batch.Buf) != fl.sum {
		f.world.check.fail("leak", "a batch was written to while it was out")
	}
	fl.batch.Owner.Done()
}

func (f *simFleet) Send(b *fleet.Batch) {
	var flights []*flight // one for each form
	for wire := b; wire != nil; wire = wire.Next {
		flights = append(flights, f.takeOff(wire))
	}
	f.world.note("send", f.client.index, len(flights[0].cmds), len(flights))
	for _, l := range f.links {
		happen(&f.onSend)
		own := flights[0]
		for _, fl := range flights {
			if fl.batch.Form == l.form {
				own = fl
			}
		}
		if l.up && own.batch.Form != l.form {
			f.world.check.failf("wire", "nothing for node %d, which speaks %v", l.index, l.form)
		}
		l.send(own)
	}
	if f.world.rules.tampers {
		b.Buf[len(b.Buf)-3] ^= 1
	}
	f.reap()
	for _, fl := range flights {
		f.done(fl)
	}
}

// happen lets things happen once.
func happen(things *[]func()) {
	now := *things
	*things = nil
	for _, thing := range now {
		thing()
	}
}

func (f *simFleet) SendTo(node int, b *fleet.Batch) {
	fl := f.takeOff(b)
	what, paid := "retry", false
	if paid = b.Owner.(*wire).batch.isHint; paid {
		what = "hand off"
	}
	for i := range fl.cmds {
		fl.cmds[i].errand, fl.cmds[i].paid = true, paid
	}
	f.world.note(what, f.client.index, node, len(fl.cmds))
	f.links[node].send(fl)
	f.done(fl)
}

// Sweep delivers what has arrived, the nodes in any order.
func (f *simFleet) Sweep(d time.Duration) {
	w := f.world
	if f.closed {
		return
	}
	// A driver that blocks here keeps its lock while the world goes on.
	if until := w.now() + d; d > 0 && f.blocks {
		f.client.busy++
		for !f.ready() && !f.woken && w.step(until) {
			if e := f.client.engine; !f.woken && !f.client.collects() && e.window.isOpen.Load() && e.queue.size.Load() > 0 {
				w.check.failf("stuck", "client %d sleeps behind an open window, and operations wait", f.client.index)
			}
		}
		f.client.busy--
		if !f.ready() && !f.woken && until > w.now() {
			w.clock.Advance(until - w.now())
		}
	}
	f.woken = false
	before := w.chance(50)
	if before {
		happen(&f.onSweep)
	}
	for _, i := range w.Perm(len(f.links)) {
		f.links[i].receive()
		if !before {
			happen(&f.onSweep)
		}
	}
	f.reap()
}

// Wake ends a Sweep that blocks, or the next one, and wakes the reader if it is
// armed.
func (f *simFleet) Wake() {
	f.woken = true
	f.arrived()
}

func (f *simFleet) ready() bool {
	for _, l := range f.links {
		if l.up && (l.fault != nil || l.lost || len(l.inbox) > 0) {
			return true
		}
	}
	return false
}

// Arm has the reader woken once there is something to read.
func (f *simFleet) Arm() {
	if !f.closed {
		f.armed = true
		f.arrived()
	}
}

// arrived wakes the reader if it is armed and there is anything.
func (f *simFleet) arrived() {
	if f.armed && (f.woken || f.ready()) {
		f.armed, f.reading = false, true
		f.client.after(f.world.between(0, 40*time.Microsecond), f.client.reader)
	}
}

// Check closes links that have been silent for too long.
func (f *simFleet) Check() {
	for _, l := range f.links {
		if l.up && len(l.owed) > 0 && f.world.now()-l.progress > 200*time.Millisecond && l.fault == nil {
			l.fault = errStall
		}
	}
	f.reap()
}

func (f *simFleet) reap() {
	for again := true; again; {
		again = false
		for _, l := range f.links {
			if l.up && l.fault != nil {
				l.takeDown()
				again = true
			}
		}
	}
}

func (f *simFleet) Close() {
	f.closed = true
	for _, l := range f.links {
		if l.up && l.fault == nil {
			l.fault = conn.ErrClosed
		}
		l.cause = &unsentError{conn.ErrClosed}
	}
	f.reap()
}

func (f *simFleet) String() string { return fmt.Sprintf("fleet of client %d", f.client.index) }
