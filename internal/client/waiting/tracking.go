package waiting

import (
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/rules/contention"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
)

// tracking is what each node does for waiting callers: it reports changed keys (nodes call this tracking), and has
// queues of processes. The first question in need of it switches tracking on for a connection, and tries it: a node is
// not used if its pushes do not arrive, or if it refuses the script of the queue.
type tracking struct {
	lines  *Lines
	id     string           // this process's, in queues
	usable quorum.SharedSet // nodes: up, and nothing speaks against them
	tracks quorum.SharedSet // tracking is on
	denied quorum.SharedSet // refuse to track or to queue up, on this connection
	silent quorum.SharedSet // have not answered in time, until they do
	logged quorum.SharedSet // their refusal was logged
	slow   quorum.SharedSet // take longer than the others
	heard  [quorum.MaxNodes]atomic.Uint64
}

// Up notes that a node has a new connection, and whether it can push. The driver lock is held.
func (l *Lines) Up(node int, can bool) {
	p := &l.tracking
	for _, set := range []*quorum.SharedSet{&p.tracks, &p.denied, &p.silent} {
		set.Remove(node)
	}
	if can {
		p.usable.Add(node)
	}
}

// Down notes that a node has no connection. The driver lock is held.
func (l *Lines) Down(node int) {
	l.tracking.usable.Remove(node)
	l.sentry.note(&l.sentry.lost, node)
}

// refuse notes that a node refuses what waiting needs, and logs it once. The driver lock is held.
func (p *tracking) refuse(node int, what string, err error) error {
	p.denied.Add(node)
	p.usable.Remove(node)
	if log := p.lines.cfg.Logger; log != nil && p.logged.Add(node) {
		p.lines.cfg.Engine.Notify(engine.News(func() { log.Warn("redlock: "+what, "node", p.lines.cfg.Nodes[node], "error", err) }))
	}
	return errRefused
}

// queueError is the error of the queue's script at a node. A node refusing the script is not used.
func (p *tracking) queueError(node int, said *command.Said) error {
	if said.Lacks {
		return p.refuse(node, "node refuses the script by which processes queue up", said.Err)
	}
	return said.Err
}

// isTracked reads the replies of CLIENT CACHING and of PTTL: how long the key lives, 0 without a key.
func (p *tracking) isTracked(node int, caching, pttl *command.Said) (ttl time.Duration, err error) {
	switch {
	case caching.Err != nil: // it is another connection
		p.tracks.Remove(node)
		return 0, caching.Err
	case pttl.Err != nil:
		return 0, pttl.Err
	case pttl.Ints[0] == command.NoTTL:
		return clock.Forever, nil
	}
	return contention.Millis(pttl.Ints[0]), nil
}

// silence notes that a node has not answered in time. It is not used until it does.
func (p *tracking) silence(node int) {
	p.silent.Add(node)
	p.usable.Remove(node)
	p.lines.sentry.note(&p.lines.sentry.lost, node)
}
