package conn

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/quorum"
)

// Fleet is the N nodes of one client. The package documentation lists the methods under the lock.
type Fleet struct {
	cfg    Config
	lock   sync.Locker
	nodes  []*node
	ready  quorum.Set // the result of the last poll
	closed bool
	hidden []error // see causeOf
	under  int     // batches of the owner, sent and not done

	poller
	blocks bool           // its poll can
	pumps  sync.WaitGroup // the goroutines of a portable poller

	forms    []Form     // of the nodes up, each once; see Forms
	away     quorum.Set // nodes without a connection, except resting ones
	canBlock bool       // see CanBlock
	servers  servers

	ctx      context.Context // ended by Close; ends the dialers
	cancel   context.CancelFunc
	dials    sync.WaitGroup
	first    first
	shortage shortage
}

// New prepares a fleet and starts to dial its nodes in the background. lock is
// the owner's; New does not take it, but the dialers do.
func New(cfg Config, lock sync.Locker) (*Fleet, error) {
	cfg = cfg.withDefaults()
	f := &Fleet{cfg: cfg, lock: lock, servers: make(servers)}
	f.hidden = append(slices.Clip(ofContexts), cfg.knobs.Hidden...)
	f.ctx, f.cancel = context.WithCancel(context.Background())
	if cfg.usesRaw() {
		var err error
		if f.poller, f.blocks, err = newFastPoller(len(cfg.Addresses)); err != nil {
			return nil, err
		}
	} else {
		f.poller = &pumpPoller{pumps: &f.pumps, readable: make(chan struct{}, 1)}
	}
	for i, addr := range cfg.Addresses {
		f.nodes = append(f.nodes, newNode(f, i, addr))
	}
	f.enlist()
	now := time.Now()
	f.first = first{began: now, last: now, dialing: quorum.First(len(f.nodes)), changed: make(chan struct{})}
	f.shortage.news = make(chan struct{})
	for i := range f.nodes {
		f.dials.Go(func() { f.dial(i, 0) })
	}
	return f, nil
}

func (f *Fleet) now() clock.Instant { return f.cfg.knobs.Clock.Now() }

// Len returns the number of configured nodes.
func (f *Fleet) Len() int { return len(f.nodes) }

// Fault returns why a node is sent nothing, marked as [ErrNotSent], or nil: it is down, or owes too much.
func (f *Fleet) Fault(node int) error {
	n := f.nodes[node]
	if n.sock == nil {
		return n.cause
	}
	return n.full
}

// Away returns the nodes without a connection, except resting ones. A batch sent now fails on them at once.
func (f *Fleet) Away() quorum.Set { return f.away }

// Forms returns the forms of the nodes up, each once. The slice belongs to the fleet, and changes with them.
func (f *Fleet) Forms() []Form { return f.forms }

// SetForm changes the form of a node, for as long as its connection lasts. Batches already sent stay as they are.
func (f *Fleet) SetForm(node int, form Form) {
	f.nodes[node].form = form
	f.enlist()
}

// enlist determines which forms are in use, which nodes are away, and whether Sweep can block.
func (f *Fleet) enlist() {
	f.forms, f.away, f.canBlock = f.forms[:0], 0, f.blocks
	for i, n := range f.nodes {
		f.canBlock = f.canBlock && !n.isResting()
		if n.sock == nil {
			f.away.Add(i)
		} else if !slices.Contains(f.forms, n.form) {
			f.forms = append(f.forms, n.form)
		}
	}
}

// Send writes to every node the batch of the list b in the node's form. On a node that is down, or owes too much, the
// batch fails at once.
func (f *Fleet) Send(b *Batch) {
	now := f.now()
	for other := b; other != nil; other = other.Next {
		other.sentAt = now
		other.single, other.counted = false, true
		f.under++
		other.waiting = 1 // or Done would be called before every node was sent it
	}
	for _, n := range f.nodes {
		own := b
		for own.Form != n.form && own.Next != nil {
			own = own.Next
		}
		if own.Form != n.form {
			own = b
		}
		n.send(own, now)
	}
	f.reap()
	for b != nil {
		next := b.Next // before b is used again
		f.done(b)
		b = next
	}
}

// SendTo writes b to one node, in any form. It may be meant for one connection, so for a resting node it fails.
func (f *Fleet) SendTo(node int, b *Batch) {
	n := f.nodes[node]
	b.sentAt = f.now()
	b.waiting, b.single, b.counted = 1, true, true
	f.under++
	if n.isResting() {
		b.Owner.Fail(node, 0, n.cause)
	} else {
		n.send(b, b.sentAt)
	}
	f.done(b)
	// No reap: an Owner may call this from within Reply. The caller of the Owner reaps, or the next Sweep.
}

// Sweep reads everything that has arrived and hands it to the owners. If nothing has arrived, it blocks for up to d where the
// fleet can; see CanBlock.
func (f *Fleet) Sweep(d time.Duration) {
	if f.closed {
		return
	}
	f.reap() // nodes that SendTo found dead
	f.ready = f.poll(d)
	if f.ready == 0 {
		return
	}
	for i := range f.ready.All() {
		if n := f.nodes[i]; n.sock != nil {
			n.flush()
			n.receive(f.now()) // its own reading: round trips are compared
		}
	}
	f.reap()
}

// Wake ends a blocked Sweep, or else the next one, and a Wait after Arm. It may be called at any time, without the
// lock.
func (f *Fleet) Wake() { f.poller.Wake() }

// Arm makes the next arrival end a Wait, once; with late set, one of a node outside [Fleet.Early].
func (f *Fleet) Arm(late bool) { f.poller.Arm(late) }

// Wait blocks until something arrived after Arm, or until Close. It reports whether the fleet is still open. One goroutine
// waits, without the lock.
func (f *Fleet) Wait() bool { return f.poller.Wait() }

// Check closes the connections owing a reply, after a silence longer than the stall bound.
func (f *Fleet) Check() {
	now := f.now()
	for _, n := range f.nodes {
		if n.sock != nil && n.fault == nil && n.owed.len > 0 && now.Sub(n.progress) > f.cfg.StallTimeout {
			n.fault = ErrStalled
		}
	}
	f.reap()
}

// reap takes down the nodes with a lost connection, and starts their dialers. It loops: when a batch fails, its Owner
// may write to another node, and find it dead too.
func (f *Fleet) reap() {
	for again := true; again; {
		again = false
		for i, n := range f.nodes {
			if n.sock == nil || n.fault == nil {
				continue
			}
			again = true
			dialed := n.isResting() // a dialer works on it
			if n.isIdleEnd() && !f.closed {
				n.rest()
			} else {
				n.down("read", n.fault)
			}
			if attempt := n.young; !f.closed && !dialed {
				f.dials.Go(func() { f.dial(i, attempt) })
			}
		}
	}
}

// CanBlock reports whether Sweep can block. Then a lone caller can wait there for its own reply: not while a node rests,
// since a dialer needs the lock then.
func (f *Fleet) CanBlock() bool { return f.canBlock }

// Early is the first nodes, to which a batch is sent first: fewer than any majority, and too few to rule one out. Their
// answers alone decide nothing.
func (f *Fleet) Early() quorum.Set { return early(len(f.nodes)) }

func early(nodes int) quorum.Set { return quorum.First((nodes - 1) / 2) }

// Close takes every node down and fails what they owe. It returns at once; Drain waits for the goroutines.
func (f *Fleet) Close() {
	if f.closed {
		return
	}
	f.closed = true
	f.cancel()
	for _, n := range f.nodes {
		if n.sock != nil {
			n.fault = ErrClosed
		}
		n.cause = n.unsent("write", ErrClosed)
	}
	f.reap()
	f.close()
}

// Drain waits until every goroutine of a closed fleet has ended. It is called without the lock, which the last dialers
// need. It never returns if a Dialer does not, or if Close of one of its connections does not end Read and Write.
func (f *Fleet) Drain() {
	f.dials.Wait()
	f.pumps.Wait()
}
