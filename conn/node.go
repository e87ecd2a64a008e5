package conn

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/resp"
)

// maxReceive bounds what one Sweep reads of a node, and so how long an endless sender keeps the fleet's lock. The
// next Sweep reads on.
const maxReceive = 4 * readBuffer

// node is one master as the fleet sees it: either down, or up with a connection and the queue of its owed replies.
type node struct {
	index      int
	addr       string
	persistent bool // declared to forget nothing when it restarts
	fleet      *Fleet

	sock   sock     // nil while down; see idle.go for the one of a resting node
	id     identity // of the server behind sock, or of the last one
	form   Form     // of its commands
	met    []string // run_ids of servers before that one, the latest last
	shared bool     // the address leads to several servers, as was said
	cause  *notSent // why it is down
	fault  error    // set while up: close at the next reap, for this reason
	full   error    // set while up: it owes too much, and is sent nothing until it has answered all

	look look

	since   clock.Instant // of sock
	heard   clock.Instant // when sock was made, or gave its last reply
	wrote   clock.Instant // when the last batch for all nodes was sent that it has answered: it was a master then
	resumed bool          // sock has replaced one ended while idle
	young   int           // connections in a row that have died young
	failed  int           // these and failed dials in a row, before sock
	history History       // over all connections

	owed     inflight
	opening  *Batch        // the first batch on sock, sent by OnUp; nil if there was none, or it was answered
	progress clock.Instant // when it last sent a whole reply, or was sent a batch while it owed nothing

	stream
	pushes int           // pushes it may send now
	pushed clock.Instant // when it had used up the earlier ones
}

func newNode(f *Fleet, index int, addr Address) *node {
	n := &node{index: index, addr: addr.String(), persistent: addr.Persistent, fleet: f}
	n.in = make([]byte, max(readBuffer, f.cfg.MaxReply))
	n.look.init(n)
	n.cause = n.unsent("dial", errFirstDial)
	return n
}

// unsent is a failure of the node before anything was written.
func (n *node) unsent(op string, err error) *notSent {
	return &notSent{&Error{Addr: n.addr, Op: op, Err: err}}
}

// up begins a connection's life. What waits in the queue of a resting node is kept.
func (n *node) up(s sock, id identity) {
	n.resumed = n.isResting()
	if n.resumed {
		n.progress = n.fleet.now()
	} else {
		n.owed = inflight{ring: n.owed.ring}
	}
	n.sock, n.id, n.form, n.fault, n.full = s, id, id.form, nil, nil
	n.since = n.fleet.now()
	n.heard, n.look.last, n.look.emptied, n.wrote = n.since, n.since, false, n.since
	n.history.Connects++
	if n.history.RoundTrips == 0 { // known before the first batch
		n.history.RoundTrip = id.trip
	}
	n.opening = nil
	n.pushes, n.pushed = firstPushes, n.since
	n.stream = stream{in: n.in, decoder: newDecoder(n.fleet.cfg.MaxReply)}
}

// mostMet bounds the servers remembered by a node.
const mostMet = 8

// leadsToSeveral reports, once, that the server of the present connection was met before the last server (its run_id is
// last). A run_id is made anew by each start of a server, so both servers run, behind one address.
func (n *node) leadsToSeveral(last string) (news bool) {
	if last == "" || last == n.id.RunID {
		return false
	}
	news = !n.shared && slices.Contains(n.met, n.id.RunID)
	n.shared = n.shared || news
	n.met = append(n.met[max(0, len(n.met)+1-mostMet):], last)
	return news
}

// down ends it, and fails what it still owes. A connection dying young counts as a failed dial, however well it has
// worked: otherwise a node that cuts off each connection would be dialed again and again without a pause. Without a
// single reply it counts with the failures before it. One that has lived longer is replaced at once.
func (n *node) down(op string, err error) {
	if !n.isResting() {
		if n.heard == n.since {
			n.young = n.failed
		}
		n.young++
		if n.fleet.now().Sub(n.since) >= youth {
			n.young = 0
		}
		n.fleet.servers.leave(n.id.RunID, n)
	}
	n.sock.close(n.owed.len > 0)
	n.sock, n.fault, n.opening = nil, nil, nil
	n.cause = n.unsent(op, n.fleet.causeOf(err))
	n.fleet.enlist()
	if on := n.fleet.cfg.OnDown; on != nil && !n.fleet.closed {
		on(n.index)
	}
	n.failOwed(false)
}

// failOwed fails what the node owes. With keep set, what was sent to all nodes and is not written stays.
func (n *node) failOwed(keep bool) {
	owed := n.owed
	n.owed = inflight{ring: make([]*Batch, minRing)} // an Owner may call Fleet.Node during Fail
	for written := owed.unsent; owed.len > 0; written-- {
		partly := written == 0 && owed.offset > 0
		from, failed := owed.next, owed.failed // in a separate statement: pop changes them
		b := owed.pop()
		switch {
		case failed: // its owner knows
		case written > 0 || partly:
			b.Owner.Fail(n.index, from, n.cause.cause)
		case keep && !b.single:
			n.owed.push(b)
			continue
		default:
			b.Owner.Fail(n.index, from, n.cause)
		}
		n.fleet.done(b)
	}
}

// send writes b, or what the kernel takes of it; the rest waits in the queue.
func (n *node) send(b *Batch, now clock.Instant) {
	switch {
	case n.sock == nil:
		b.Owner.Fail(n.index, 0, n.cause)
		return
	case n.full == nil && n.isBehind(b):
		n.full = n.unsent("write", ErrFull)
	}
	if n.full != nil && n.fault == nil {
		// Its connection stays: a healthy node may be behind by a part of the stall bound. Its votes would be late, until
		// it has caught up.
		b.Owner.Fail(n.index, 0, n.full)
		return
	}
	if n.owed.len == 0 {
		n.progress = now
		// The end of an idle connection may have arrived. A write would succeed, and there would be no way to know
		// whether it has reached the server. r is above 0 while a callback of decode sends.
		if now.Sub(n.heard) >= idleFor && n.r == 0 {
			n.receive(now)
		}
	}
	idle := n.owed.unsent == n.owed.len
	if n.look.isDue(b, now) {
		n.look.ask(now)
	}
	b.waiting++
	n.owed.push(b)
	if idle {
		n.flush()
	}
}

// isBehind reports whether a node would owe too much with b. A node that owes nothing is not behind, however large
// the batch. The first batch of the connection (opening) does not count: with it a node with many hints and a steady
// load would exceed the bound at every connection.
func (n *node) isBehind(b *Batch) bool {
	replies, bytes := n.owed.replies, n.owed.bytes
	if n.owed.len > 0 && n.owed.at(0) == n.opening {
		replies -= n.opening.Replies - n.owed.next
		bytes -= len(n.opening.Buf)
	}
	return replies > 0 && (replies+b.Replies > n.fleet.cfg.MaxInFlight || bytes+len(b.Buf) > n.fleet.cfg.MaxInFlightBytes)
}

// flush writes what is queued until the kernel takes no more.
func (n *node) flush() {
	for n.fault == nil && n.owed.unsent < n.owed.len {
		b := n.owed.at(n.owed.unsent).Buf[n.owed.offset:]
		k, err := n.sock.send(b)
		if err != nil {
			n.fault = err
			return
		}
		n.owed.sent(k)
		if k < len(b) {
			return
		}
	}
}

// receive reads what has arrived, up to a bound, and hands the replies to the owners.
func (n *node) receive(now clock.Instant) {
	for left := maxReceive; n.fault == nil; {
		if left <= 0 {
			return // the poller reports it again
		}
		k, err := n.sock.recv(n.in[n.w:])
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			n.fault = err
			return
		}
		if k == 0 {
			return
		}
		room := len(n.in) - n.w
		n.w += k
		left -= k
		n.decode(now)
		if k < room {
			return // a short read: there is no more
		}
	}
}

// decode hands on every whole reply in the buffer and keeps the rest at its start.
func (n *node) decode(now clock.Instant) {
	for n.r < n.w && n.fault == nil {
		pushed := resp.Kind(n.in[n.r]) == resp.Push
		b := n.owed.oldest()
		if b == nil && !pushed {
			n.fault = ErrUnsolicited
			return
		}
		if !pushed && !n.isDoubted(b) {
			if k, usual := n.owed.asUsual(n.in[n.r:n.w]); usual && k == 0 {
				break // a part of a reply, which is no progress: a node may drip
			} else if usual {
				count := bytes.Count(n.in[n.r:n.r+k], []byte{'\n'})
				n.r += k
				n.replied(b, count, now, true)
				continue
			}
		}
		switch err := n.next(); {
		case err == resp.ErrIncomplete:
			n.shift()
			return
		case err != nil:
			n.fault = err
		case n.value.Kind == resp.Push:
			n.push()
		default:
			n.replied(b, 1, now, false)
		}
	}
	n.shift()
}

// replied hands replies to the owner of b, the oldest batch: usual ones by their count, or the decoded value.
func (n *node) replied(b *Batch, count int, now clock.Instant, usual bool) {
	n.progress, n.heard = now, now
	n.pushes = min(n.pushes+count, mostPushes)
	whole, doubted, failed := n.owed.unsent > 0, n.isDoubted(b), n.owed.failed
	i, last := n.owed.replied(count)
	if n.owed.len == 0 {
		n.full = nil
	}
	var misfit error
	switch {
	case usual:
		b.Counter.AsUsual(n.index, i, count)
	case !doubted:
		misfit = b.Owner.Reply(n.index, i, &n.value)
	case b.Doubter != nil:
		misfit = b.Doubter.Doubted(n.index, i, &n.value)
	case !failed:
		n.owed.failed = !last
		b.Owner.Fail(n.index, i, &Error{Addr: n.addr, Op: "read", Err: ErrEmptied})
	}
	if misfit != nil {
		n.fault = misfit
	}
	if last {
		if b == n.opening {
			n.opening = nil // it may be large
		}
		if b != &n.look.Batch {
			n.history.trip(max(0, now.Sub(b.sentAt))) // an errand may be sent in mid-sweep
		}
		if !b.single {
			n.wrote = max(n.wrote, b.sentAt)
		}
		if !whole {
			n.fault = ErrUnsolicited // answered before it was asked
		}
		n.fleet.done(b)
	}
}
