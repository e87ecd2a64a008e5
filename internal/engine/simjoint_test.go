package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/renewal"
	"github.com/redlock-go/redlock/quorum"
)

// joint is several operations that are one, which their caller waits for: DoAll.
type joint struct {
	holder *holder
	calls  []*Call
	locks  []*lock // of the calls
	back   []bool
	left   int
	asked  time.Duration
	over   bool
	unsent bool
	then   func(j *joint, err error)
}

// call is one operation of a joint.
func (h *holder) call(l *lock, kind Kind, ttl time.Duration) *Call {
	c := &Call{done: make(chan struct{}, 1)}
	c.Kind, c.Key, c.Token, c.TTL, c.Done = kind, fmt.Appendf(nil, "key-%d", l.key), tokenOf(h.locks[0].number), ttl, c
	if kind == Release {
		c.Absent = l.absent
	}
	if kind == Acquire {
		c.Block = h.block.Block
	}
	if err := h.client.engine.check(&c.Op); err != nil {
		h.world.check.fail("once", "Check: "+err.Error())
	}
	return c
}

// do asks for one thing at every key.
func (h *holder) do(kind Kind, ttl time.Duration, then func(j *joint, err error)) {
	j := &joint{holder: h, then: then}
	for _, l := range h.locks {
		j.add(l, h.call(l, kind, ttl))
	}
	j.begin()
}

func (j *joint) add(l *lock, c *Call) {
	j.calls, j.locks = append(j.calls, c), append(j.locks, l)
}

// begin is DoAll, which blocks, up to where it does.
func (j *joint) begin() {
	h := j.holder
	w, c := h.world, h.client
	ended := make(chan struct{})
	if w.chance(25) {
		c.after(w.between(0, 3*time.Millisecond), func() { close(ended) })
	}
	j.asked, j.left, j.back = w.now(), len(j.calls), make([]bool, len(j.calls))
	var l list
	for i, call := range j.calls {
		call.ended = ended
		l.push(&call.Op)
		if w.note("ask", c.index, int(call.Kind), j.locks[i].number); !call.Kind.Reads() {
			w.check.submitted(c, j.locks[i], call.Kind)
		}
	}
	kind, now := j.calls[0].Kind, c.clock.Now()
	if err := c.engine.enqueueAll(l, now, bounded); err != nil {
		if err != ErrBusy && (err != ErrClosed || !c.dead) {
			w.check.fail("once", "enqueueAll: "+err.Error())
		}
		w.note("refused", c.index, j.locks[0].number, 0)
		j.unsent = true
		j.then(j, err)
		return
	}
	c.pending += len(j.calls)
	h.joints = append(h.joints, j)
	c.engine.submittedNow(kind, now, nil)
}

// poll is the rest of DoAll, for all that is under way. It tells whether any came back.
func (h *holder) poll() (back bool) {
	for _, j := range slices.Clone(h.joints) {
		back = j.poll() || back
	}
	return back
}

func (j *joint) poll() (back bool) {
	h := j.holder
	w, c := h.world, h.client
	for i, call := range j.calls {
		if j.back[i] || len(call.done) == 0 {
			continue
		}
		<-call.done
		w.note("told", c.index, int(call.Kind), j.locks[i].number)
		back, j.back[i], j.over = true, true, j.over || call.over
		j.left--
		c.pending--
		switch {
		case call.over:
		case call.Kind.Reads():
			w.check.read(c, j.locks[i], call, j.asked)
		default:
			w.check.votes(c, j.locks[i], &call.Op, j.asked)
		}
	}
	if !back || j.left > 0 {
		return back
	}
	h.joints = slices.DeleteFunc(h.joints, func(other *joint) bool { return other == j })
	j.then(j, j.result())
	return true
}

// result is the error of all of them.
func (j *joint) result() (err error) {
	if j.over {
		return context.Canceled
	}
	for _, call := range j.calls {
		if j.holder.world.rules.someHeld && call.Err == nil {
			return nil
		}
		err = Joint(err, call.Err)
	}
	return err
}

// released notes that the release of an acquire is about to be queued.
func (j *joint) released(i int) {
	l := j.locks[i]
	l.loose = false
	j.holder.world.check.submitted(j.holder.client, l, Release)
}

// see reads what the nodes have at a key.
func (h *holder) see(l *lock) { h.reads(l, func(*joint, error) {}) }

func (h *holder) reads(l *lock, then func(j *joint, err error)) {
	j := &joint{holder: h, then: then}
	j.add(l, h.call(l, ReadTTL, 0))
	j.add(l, h.call(l, ReadValue, 0))
	h.world.check.reads++
	j.begin()
}

// handOver gives the lock to an idle holder of another client, which attaches it; the
// keeper stops first.
func (h *holder) handOver() bool {
	w := h.world
	to := w.clients[w.IntN(len(w.clients))]
	if len(h.locks) > 1 || h.shorter || len(h.joints) > 0 || len(to.holders) == 0 || to == h.client || to.dead || to.frozen() || w.rules.halves {
		return false
	}
	other := to.holders[w.IntN(len(to.holders))]
	if other.locks != nil || len(other.joints) > 0 {
		return false
	}
	h.stop()
	l := h.locks[0]
	other.attach(l, l.until-w.now())
	h.pause()
	return true
}

// attach makes a lock of another client the holder's, once a quorum has shown it. It is
// Attach: validity is what was given, and what the nodes show at most.
func (h *holder) attach(l *lock, left time.Duration) {
	w, c := h.world, h.client
	w.note("attach", c.index, int(left), l.number)
	if l.holding = false; left <= 0 {
		l.forgotten = true
		return
	}
	now := c.clock.Now()
	h.locks, h.shorter = []*lock{l}, true
	h.reads(l, func(j *joint, err error) {
		var ends []time.Duration
		if err == nil && !j.unsent {
			for _, t := range j.calls[0].Values {
				for _, v := range j.calls[1].Values {
					if token := tokenOf(l.token()); v.Node == t.Node && v.Text == token.String() && t.Int > 0 {
						ends = append(ends, quorum.Until(now, time.Duration(t.Int)*time.Millisecond))
					}
				}
			}
		}
		slices.Sort(ends)
		size := quorum.Size(c.fleet.Len())
		if len(ends) < size || c.dead {
			h.forget()
			return
		}
		until := min(now+left, ends[len(ends)-size])
		if c.clock.Now() >= until {
			h.forget()
			return
		}
		h.ttl = max(until-now, MinTTL).Truncate(time.Millisecond)
		w.check.attached++
		h.validity = &validity{Validity: renewal.Begin(h.ttl, until)}
		l.client, l.validity, l.absent, l.set, l.loose = c, h.validity, 0, h.locks, false
		w.check.acquired(l)
		h.run()
	})
}

// token is the number in the lock's token.
func (l *lock) token() int {
	if l.set != nil {
		return l.set[0].number
	}
	return l.number
}

// read checks what nodes are said to have told: what was there, and when it ends.
func (c *checker) read(cl *client, l *lock, call *Call, asked time.Duration) {
	if call.Err == ErrClosed {
		return
	}
	seen := 0
	for _, v := range call.Values {
		m := cl.fleet.links[v.Node].master
		if seen |= 1 << v.Node; call.Kind == ReadTTL || v.Text == "" {
			continue
		}
		number, err := lockOfToken(strings.TrimSpace(v.Text))
		if err != nil {
			c.failf("read", "node %d has told %q", v.Node, v.Text)
			continue
		}
		if has := c.member(number, l.key); has.key != l.key || has.granted[m.index] == 0 || has.gone[m.index] < asked {
			c.failf("read", "node %d has told lock %d of key %d, which is not there", v.Node, number, l.key)
		}
	}
	for _, f := range call.Failures {
		seen |= 1 << f.Node
	}
	if seen != 1<<cl.fleet.Len()-1 {
		c.failf("read", "nodes %b of %d have told something", seen, cl.fleet.Len())
	}
}
