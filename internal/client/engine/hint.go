package engine

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/fleet"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
)

// Hinted handoff: a release that a node could not be given is kept as a hint. Hints are handed off on the node's next
// connection before anything else is sent, or the node could extend a lock it is about to release. Hints of releases
// are enough: each acquire that may have set a key without a holder is followed by a release. The release of an
// absent key does no harm.
//
// A node that cannot have the key gets no hint (round.absent). While a quorum is away,
// such hints would fill the bound.

const (
	// hintBytes bounds the memory of the hints for a node: as many releases as may be under way there, with keys of 30
	// bytes. Each costs hintCost beside its key and its token.
	hintBytes = 2 << 20
	hintCost  = 64
	// handoffOps is how many are handed off at a time. The next follow when they are answered: each may have to be
	// sent again by itself.
	handoffOps = 1024
	// handoffPause is the pause after a node has refused hints for now, with BUSY
	// for example.
	handoffPause = time.Second
)

// hints is the hints for all nodes. The driver lock protects them.
type hints struct {
	nodes *nodes
	of    [quorum.MaxNodes]nodeHints
}

// hint is a release that a node could not be given. The token has its tail behind it.
type hint struct{ key, token string }

func (x hint) size() int { return hintCost + len(x.key) + len(x.token) }

// nodeHints are those for one node, each once: while a quorum is away callers repeat their releases.
type nodeHints struct {
	all   []hint // oldest first
	known map[hint]bool
	bytes int           // their sizes
	met   bool          // the node had a connection once; without it there are no keys
	out   bool          // some are on their way
	loads bool          // the next are sent after the script
	apart bool          // the next are sent a command each: a call of several was refused
	retry clock.Instant // not before
}

func (h *nodeHints) add(x hint) {
	if h.known[x] {
		return
	}
	if len(h.all) == 0 {
		h.all, h.known = nil, make(map[hint]bool)
	}
	h.all = append(h.all, x)
	h.known[x] = true
	h.bytes += x.size()
}

// take takes out the oldest, and returns their releases too.
func (h *nodeHints) take(most int) (some []hint, releases []command.Operand) {
	n := min(most, len(h.all))
	some, h.all = h.all[:n], h.all[n:]
	for _, x := range some {
		releases = append(releases, command.Operand{Key: []byte(x.key), Token: []byte(x.token)})
		h.bytes -= x.size()
		delete(h.known, x)
	}
	return some, releases
}

// wanted reports whether a release that failed on a node is to be kept.
func (l *hints) wanted(node int) bool {
	h := &l.of[node]
	return h.met && h.bytes < hintBytes && !l.nodes.closing.Load()
}

// up hands off the hints of a node with a new connection.
func (l *hints) up(node int) {
	h := &l.of[node]
	h.met, h.out = true, false
	l.handOff(node)
}

// handoff is hints on their way to a node. Hints refused for another reason than their keys are sent again, with the
// next.
type handoff struct {
	fleet.Batch
	hints  *hints
	node   int
	left   []hint // without an answer
	counts []int  // by reply to come: of how many hints
	loads  bool   // the first reply is to SCRIPT LOAD
	later  bool   // some were refused for now
}

// handOff sends the first of a node's hints.
func (l *hints) handOff(node int) {
	h := &l.of[node]
	if len(h.all) == 0 || h.out {
		return
	}
	o := &handoff{hints: l, node: node}
	o.Owner, o.Form = o, l.nodes.Node(node).Form
	form, merge := command.Form(o.Form), command.MaxKeys
	if h.apart {
		merge = 1
	}
	if o.loads = h.loads; o.loads {
		o.Buf, o.counts = command.AppendLoad(nil, Release, form), []int{0}
	}
	var operands []command.Operand
	o.left, operands = h.take(handoffOps) // before they fail, if they fail at once
	for len(operands) > 0 {
		n := command.Merge(Release, form, operands, merge)
		o.Buf, o.counts = command.Append(o.Buf, Release, form, operands[:n], nil), append(o.counts, n)
		operands = operands[n:]
	}
	o.Replies = len(o.counts)
	h.out, h.loads, h.apart = true, false, false
	l.nodes.sendTo(node, &o.Batch, maxTimeout)
}

// Reply implements fleet.Owner.
func (o *handoff) Reply(_, i int, v *resp.Value) error {
	n, form, h := o.counts[i], command.Form(o.Form), &o.hints.of[o.node]
	switch {
	case n == 0 && command.IsLoaded(v):
		return nil
	case n > 0 && !v.IsError() && command.FitsRelease(n, form, v):
		o.cut(n, false)
		return nil
	case n == 0 || !v.IsError():
		return misfit(v)
	}
	r := command.Refused(Release, form, n, v, o.loads)
	o.later = o.later || r.Later
	switch r.Remedy {
	case command.Load:
		h.loads = true
	case command.Split:
		h.apart = true
	case command.Rephrase:
		o.hints.nodes.rephrase(o.node, form)
	}
	o.cut(n, r.Later || r.Fatal || r.Remedy != command.None)
	if r.Fatal {
		return r.Err
	}
	return nil
}

// cut ends the first n hints. It may keep them for the next handoff.
func (o *handoff) cut(n int, keep bool) {
	n = min(n, len(o.left))
	for _, x := range o.left[:n] {
		if keep && o.hints.wanted(o.node) {
			o.hints.of[o.node].add(x)
		}
	}
	o.left = o.left[n:]
}

// Fail implements fleet.Owner.
func (o *handoff) Fail(int, int, error) {
	o.cut(handoffOps, true)
}

// Done implements fleet.Owner. It goes on with the next hints.
func (o *handoff) Done() {
	l, h := o.hints, &o.hints.of[o.node]
	l.nodes.answered()
	h.out = false
	switch {
	case o.later:
		h.retry = l.nodes.clock.Now().Add(handoffPause)
	case l.nodes.Fault(o.node) == nil && !l.nodes.closing.Load():
		l.handOff(o.node)
	}
}

// again hands off hints refused for a while, and reports whether more is to come.
func (l *hints) again(now clock.Instant) (more bool) {
	for node := range l.nodes.n {
		h := &l.of[node]
		if len(h.all) == 0 || h.out || l.nodes.Fault(node) != nil {
			continue
		}
		if more = true; now >= h.retry {
			l.handOff(node)
		}
	}
	return more
}
