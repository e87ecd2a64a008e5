package waiting

import (
	"errors"
	"slices"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/rules/contention"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
)

// inquiry is a question to a node, for a step of a desk.
type inquiry struct {
	*engine.Query
	step   contention.Step
	begins int    // the first replies: of switching tracking on
	heard  uint64 // pushes of the node before
	shared bool   // it is about the lock's sharers
}

// ways is the words of the queue's script.
var ways = [...]command.Way{contention.InPlace: command.Enter, contention.AtEnd: command.Again, contention.BehindGap: command.Gap}

var errRefused = errors.New("the node refuses what waiting needs")

// inquire begins a question to a node. If the node is to track a key, tracking is switched on where it is not yet.
func (d *desk) inquire(step contention.Step, tracks bool) *inquiry {
	p, cfg := &d.lines.tracking, &d.lines.cfg
	x := &inquiry{Query: cfg.Engine.Query(step.Node, cfg.QueryTimeout), step: step, heard: p.heard[step.Node].Load()}
	if tracks && !p.tracks.Has(step.Node) {
		x.Buf, x.begins = command.AppendTracking(x.Buf, d.key, p.id)
	}
	return x
}

// send queues a question, for unlock to send it. It is false, and the question freed, where the process has left its queues.
func (d *desk) send(x *inquiry) bool {
	if d.lines.left.Load() || !d.lines.cfg.Engine.AskSoon(x.Query) {
		x.Free()
		return false
	}
	d.shard.asks = true
	return true
}

// ask asks a node what a step needs. answered goes on.
func (d *desk) ask(step contention.Step) {
	p, cfg := &d.lines.tracking, &d.lines.cfg
	x, replies := d.inquire(step, true), 0
	switch step.Action {
	case contention.Enter:
		x.Buf, replies = command.AppendQueue(x.Buf, d.key, p.id, step.Shared, ways[step.Way], step.Rarely)
		if step.Tracks {
			more := 0
			x.Buf, more = command.AppendWatch(x.Buf, d.key, false, false)
			replies += more
		}
	case contention.Watch:
		x.shared = d.first.shared && !d.Clears()
		x.Buf, replies = command.AppendWatch(x.Buf, d.key, x.shared, step.Gaps)
	}
	x.Replies, x.Ring, d.asked = x.begins+replies, d.answered, x
	if !d.send(x) {
		d.asked = nil
		d.Failed(&contention.Surroundings{Now: cfg.Clock.Now()}, step.Node)
	}
}

// answered takes the answer to the present question. The driver lock is held.
func (d *desk) answered() {
	l := d.lines
	d.shard.mu.Lock()
	defer l.unlockDriven(d.shard)
	x, around := d.asked, l.around(d, l.cfg.Clock.Now())
	d.asked = nil
	err := d.read(x, &around)
	x.Free()
	if err != nil {
		d.Failed(&around, x.step.Node)
		if x.step.Action == contention.Enter { // the process may have entered all the same
			d.leave(quorum.Only(x.step.Node))
		}
	}
	d.advance()
}

// read reports an answer to the contender.
func (d *desk) read(x *inquiry, around *contention.Surroundings) error {
	p, node, step := &d.lines.tracking, x.step.Node, x.step
	if err := p.begun(x); err != nil {
		return err
	}
	var said [6]command.Said
	copy(said[:], x.Said[x.begins:])
	if x.step.Action == contention.Watch {
		ttl, err := p.isTracked(node, &said[0], &said[1])
		seen := contention.Seen{TTL: ttl, Steps: said[2].OfType} // of this type are sharers of the lock
		if err == nil && x.shared && (ttl == 0 || seen.Steps) {  // only a gate is in the way
			seen.Steps = true
			seen.TTL, err = p.isTracked(node, &said[3], &said[4])
		}
		if err == nil {
			seen.Gap = step.Gaps && x.Said[len(x.Said)-1].Ints[0] == 1
			d.Watched(around, node, seen)
		}
		return err
	}
	if err := p.queueError(node, &said[0]); err != nil {
		return err
	}
	ttl, err := p.isTracked(node, &said[1], &said[2])
	if err != nil {
		return err
	}
	d.Entered(around, x.step, contention.EntryOfQueue(said[0].Ints, ttl))
	if step.Tracks {
		left, err := p.isTracked(node, &said[3], &said[4])
		if err != nil {
			return err
		}
		d.Watched(around, node, contention.Seen{TTL: left, Steps: said[5].OfType})
	}
	if d.HasOthers() {
		d.passes, d.brief = min(d.passes, d.callers()), false
	}
	return nil
}

// begun reports whether a question was answered, and has switched tracking on where it had to.
func (p *tracking) begun(x *inquiry) error {
	node, q := x.step.Node, x.Query
	if q.Err != nil {
		if engine.IsTimeout(q.Err) {
			p.silence(node)
		}
		return q.Err
	}
	if x.begins == 0 {
		return nil
	}
	var refused command.Said // the first error reply
	if i := slices.IndexFunc(q.Said[:x.begins], func(s command.Said) bool { return s.Err != nil }); i >= 0 {
		refused = q.Said[i]
	}
	switch {
	case refused.Later, refused.OfKey: // for now, or for this lock alone
		return refused.Err
	case refused.Err != nil || p.heard[node].Load() == x.heard:
		return p.refuse(node, "node does not report when a lock is freed, waiters poll", refused.Err)
	}
	p.tracks.Add(node)
	return nil
}
