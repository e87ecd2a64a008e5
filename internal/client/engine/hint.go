package engine

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
)

// Hinted handoff: what is owed to one node is kept as a hint, and sent to it alone.
//
// A release is owed to a node until it has answered: the key is deleted, or does not hold the token.
//
//   - A release is missed if the connection ends. It is handed off on the node's next connection before anything else
//     is sent: otherwise the node could extend a lock it is about to release.
//   - A refused release is handed off again after a pause, whichever error the node gave: a list of passing errors
//     would never be complete. The refusal may be about all releases, while an outage lasts, or about this one. While
//     the node refuses all, one is tried at a time, four times a second; as soon as a release is done there, all others
//     follow. One that is refused although others are done has a pause that doubles. If the answer ends the
//     connection, the pause also keeps the release from ending each next one.
//
// Hints of releases are enough: each acquire that may have set a key without a holder is followed by a release. The
// release of an absent key does no harm. A node that cannot have the key gets no hint (round.absent). While a quorum is
// away, such hints would fill the bound. A key that was to stay for a while (Op.Stay) stays for the rest of it when the
// hint is handed off.
//
// A repair is owed to a node that has lost the key of a lock, when an extend of the lock has won. An extend never
// creates a key. So without repair a lock held for long would lose one node at each restart, and end with the last node
// of a quorum. It is SET key token NX PX, or of a shared lock its acquire past gates, with the TTL left by the holder's
// clock. What fails is not sent again: the next extend finds out whether the key is there. What is denied is, at once, a
// few times: each extend has a rival of its own, a waiter that was notified of it. The order of a repair with the release
// of its lock needs no state: when it is written, the lock is asked (Repairer), and refuses once its release was asked
// for. So the release is sent behind it, on the same connection.
//
// A handoff is an errand in rounds without an operation: what the node refuses is sent again, in smaller calls or with
// its script, or kept, as of any batch.

const (
	// hintBytes bounds the memory of the hints for a node: some 14,000, with keys of 30 bytes. Each costs hintCost beside
	// its key and its token.
	hintBytes = 2 << 20
	hintCost  = 96
	// handoffOps is how many are handed off at a time. The next follow when they are answered: each may have to be
	// sent again by itself.
	handoffOps = 1024
	// hintPause is the pause after the first refusal of a release, and mostHintPause the longest. A node that refuses all
	// releases is tried after partOfOutage of the time since it has, between these.
	hintPause     = 250 * time.Millisecond
	mostHintPause = 30 * time.Second
	partOfOutage  = 256
	// maxDenied is how often a repair is denied before it is left to the next extend.
	maxDenied = 4
)

// hint is a release or, as an Acquire, a repair owed to a node. The token has its tail behind it.
type hint struct {
	key, token string
	kind       Kind
	shared     bool
}

func (x hint) size() int { return hintCost + len(x.key) + len(x.token) }

// owed is a waiting hint: refused or denied so often, and not to be handed off before due.
type owed struct {
	hint
	refused uint8         // how often although the node has done others
	due     clock.Instant // 0: at once
	stays   clock.Instant // until then the key of a release stays; 0: it does not
	lock    Repairer      // of a repair
	life    uint64
}

// ttl is that of its command, in milliseconds: how long a key is still to stay, or the lock to be held. A repair
// without any is in vain.
func (x *owed) ttl(lg *ledger, node int, now clock.Instant) (ms int64, vain bool) {
	if x.kind == Release {
		return max(0, int64((x.stays.Sub(now)+time.Millisecond-1)/time.Millisecond)), false
	}
	ttl := x.lock.Repair(x.life, node, now)
	if ttl < time.Millisecond {
		return 0, true
	}
	return int64(ttl / time.Millisecond), false
}

// pauseAfter is the pause of a release after so many refusals of its own.
func pauseAfter(refused uint8) time.Duration {
	return min(hintPause<<min(refused-1, 16), mostHintPause)
}

// hints are those for one node, each once: while a quorum is away callers repeat their releases. The driver lock
// protects them.
type hints struct {
	all   []owed // oldest first
	known map[hint]bool
	bytes int           // their sizes
	met   bool          // the node had a connection once; without it there are no keys
	out   bool          // some are on their way
	next  clock.Instant // when the first of all is due

	refuses clock.Instant // since when the node has refused releases, and has done none; 0: it does them
	probe   clock.Instant // when the next is tried meanwhile
}

// dueAt is when the next are to be handed off.
func (h *hints) dueAt() clock.Instant {
	if h.refuses != 0 {
		return max(h.next, h.probe)
	}
	return h.next
}

// refused notes that the node has refused releases.
func (h *hints) refused(now clock.Instant) {
	if h.refuses == 0 {
		h.refuses = max(now, 1)
	}
	h.probe = now.Add(min(max(hintPause, now.Sub(h.refuses)/partOfOutage), mostHintPause))
}

func (h *hints) add(x owed) {
	if h.known[x.hint] {
		return
	}
	if len(h.all) == 0 {
		h.all, h.known, h.next = nil, make(map[hint]bool), clock.Never
	}
	h.all = append(h.all, x)
	h.known[x.hint] = true
	h.bytes += x.size()
	h.next = min(h.next, x.due)
}

// take takes out the oldest due ones: one, while the node refuses releases.
func (h *hints) take(now clock.Instant) (some []owed) {
	left, most := h.all[:0], handoffOps
	if h.refuses != 0 {
		most = 1
	}
	h.next = clock.Never
	for _, x := range h.all {
		if x.due <= now && len(some) < most {
			some = append(some, x)
			h.bytes -= x.size()
			delete(h.known, x.hint)
			continue
		}
		left = append(left, x)
		h.next = min(h.next, x.due)
	}
	clear(h.all[len(left):])
	h.all = left
	return some
}

// Owes returns the nodes that are owed releases, and whether questions have no answer yet: for tests.
func (e *Engine) Owes() (releases quorum.Set, asks bool) {
	e.lock.Lock()
	e.turn(func() {
		for node := range e.ledger.hints {
			if len(e.ledger.hints[node].all) > 0 {
				releases |= quorum.Only(node)
			}
		}
		asks = len(e.queries.asked) > 0 || e.queries.behind > 0
	})
	return releases, asks
}

// wantsHint reports whether what a node is owed is to be kept.
func (lg *ledger) wantsHint(node int) bool {
	h := &lg.hints[node]
	return h.met && h.bytes < hintBytes && !lg.nodes.closing.Load()
}

// up hands off the hints of a node with a new connection.
func (lg *ledger) up(node int) {
	h := &lg.hints[node]
	h.met, h.out, h.refuses = true, false, 0
	if len(h.all) > 0 {
		lg.nodes.pulse.see(MaxTimeout) // those that are not due yet
	}
	lg.handOff(node, lg.nodes.clock.Now())
}

// handOff sends the first of a node's hints that are due, releases first: they free keys.
func (lg *ledger) handOff(node int, now clock.Instant) {
	h := &lg.hints[node]
	if len(h.all) == 0 || h.out || now < h.dueAt() || lg.nodes.Fault(node) != nil {
		return
	}
	b, some := lg.batch(), h.take(now)
	w := b.errand(command.Form(lg.nodes.Node(node).Form).Repairing(), false)
	for _, kind := range [...]Kind{Release, Acquire} {
		first, operands := len(b.rounds), []command.Operand(nil)
		for i := range some {
			x := &some[i]
			if x.kind != kind {
				continue
			}
			ms, vain := x.ttl(lg, node, now)
			if vain {
				continue
			}
			operands = append(operands, command.Operand{Key: []byte(x.key), Token: []byte(x.token), TTL: ms, Shared: x.shared})
			r := round{kind: kind, refused: x.refused, repairer: x.lock, repairLife: x.life}
			r.tally.Reset(lg.nodes.quorum)
			r.tally.Record(node, quorum.Failed) // this vote has been counted
			b.rounds = append(b.rounds, r)
		}
		w.append(kind, first, operands, command.MaxKeys)
	}
	if len(b.rounds) == 0 {
		lg.free.push(b)
		return
	}
	h.out = true
	b.to, b.left, b.owed, b.probes = quorum.Only(node), true, 0, h.refuses != 0 // it is in no window
	lg.nodes.unanswered.Enter()
	lg.nodes.pulse.see(MaxTimeout)
	w.sendTo(node)
}

// released notes that a node has done a release: it does not refuse them any more.
func (lg *ledger) released(node int) {
	if h := &lg.hints[node]; h.refuses != 0 {
		h.refuses = 0
		lg.ready.Add(node)
	}
}

// goOn hands off the next hints where there are new ones, or a handoff has ended.
func (lg *ledger) goOn() {
	now, ready := lg.nodes.clock.Now(), lg.ready
	lg.ready = 0
	for node := range ready.All() {
		if !lg.nodes.closing.Load() {
			lg.handOff(node, now)
		}
	}
}

// again hands off the hints that have become due, and returns when the next are.
func (lg *ledger) again(now clock.Instant) (next clock.Instant) {
	next = clock.Never
	for node := range lg.nodes.n {
		lg.handOff(node, now)
		if h := &lg.hints[node]; len(h.all) > 0 && !h.out && lg.nodes.Fault(node) == nil {
			next = min(next, h.dueAt())
		}
	}
	return next
}
