package group

import (
	"errors"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/waiters"
	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
)

// pushes has what nodes report without being asked (which they call tracking), and the queues
// of processes. Tracking is switched on for a connection by the first query that needs it,
// and tried then: a node whose pushes do not arrive is not used. A node that refuses
// the script of the queue has a gate in its place.
type pushes struct {
	id     string        // this process's, in queues
	usable atomic.Uint64 // nodes, a bit each: up, and nothing speaks against them
	tracks atomic.Uint64 // those where tracking is on
	gated  atomic.Uint64 // those that refuse the script
	denied atomic.Uint64 // those that refuse to track, on this connection
	silent atomic.Uint64 // those that have not answered in time, until they do
	logged atomic.Uint64 // those whose refusal was logged
	slow   atomic.Uint64 // those that take longer than the others
	heard  [quorum.MaxNodes]atomic.Uint64
}

func (p *pushes) init() { p.id = strconv.FormatUint(rand.Uint64()|1<<63, 16) }

func bit(node int) uint64 { return 1 << uint(node) }

func has(set *atomic.Uint64, node int) bool { return set.Load()&bit(node) != 0 }

// up notes that a node has a new connection, by which it can push or not. The driver lock
// is held.
func (p *pushes) up(node int, can bool) {
	for _, set := range []*atomic.Uint64{&p.tracks, &p.gated, &p.denied, &p.silent} {
		set.And(^bit(node))
	}
	if can {
		p.usable.Or(bit(node))
	}
}

// down notes that it has none.
func (p *pushes) down(node int) { p.usable.And(^bit(node)) }

var (
	errGivenUp = errors.New("the waiter has given up")
	errRefused = errors.New("the node refuses what waiting needs")
)

// ask has a node do what needs tracking, and returns the first replies to that.
func (p *pushes) ask(g *Group, key string, node int, done <-chan struct{}, write func([]byte) ([]byte, int)) (said [4]command.Said, err error) {
	q := g.engine.Query(node, g.queryTimeout())
	defer q.Free()
	begins, heard, skip := !has(&p.tracks, node), p.heard[node].Load(), 0
	if begins {
		q.Buf, skip = command.AppendTracking(q.Buf, key, p.id)
	}
	var n int
	q.Buf, n = write(q.Buf)
	q.Replies = skip + n
	g.engine.Ask(q)
	select {
	case <-q.Answered():
	case <-done:
		return said, errGivenUp
	case <-g.ending:
		return said, errGivenUp
	}
	if q.Err != nil {
		if engine.IsTimeout(q.Err) {
			g.lines.silence(node)
		}
		return said, q.Err
	}
	if begins {
		refused := trackingRefused(q.Said[:skip])
		switch err := refused.Err; {
		case refused.Later, refused.OfKey: // for now, or for this lock alone
			return said, err
		case err != nil || p.heard[node].Load() == heard:
			p.refuse(g, node, &p.denied, "node does not tell when a lock is freed, waiters ask again and again", err)
			p.usable.And(^bit(node))
			return said, errRefused
		}
		p.tracks.Or(bit(node))
	}
	copy(said[:], q.Said[skip:])
	return said, nil
}

// trackingRefused is the first error reply, if there is one.
func trackingRefused(said []command.Said) (refused command.Said) {
	for _, s := range said {
		if s.Err != nil {
			return s
		}
	}
	return refused
}

// refuse notes that a node refuses something, and logs it, once.
func (p *pushes) refuse(g *Group, node int, set *atomic.Uint64, what string, err error) {
	set.Or(bit(node))
	if log := g.cfg.Logger; log != nil && p.logged.Or(bit(node))&bit(node) == 0 {
		g.engine.Announce([]func(){func() { log.Warn("redlock: "+what, "node", g.fleet.Addr(node), "error", err) }})
	}
}

// isTracked reads the replies of CLIENT CACHING and of PTTL: for how long the key lives, 0
// where there is none.
func (p *pushes) isTracked(node int, caching, pttl *command.Said) (ttl time.Duration, err error) {
	switch {
	case caching.Err != nil: // the connection is another one
		p.tracks.And(^bit(node))
		return 0, caching.Err
	case pttl.Err != nil:
		return 0, pttl.Err
	case pttl.Ints[0] == command.NoTTL:
		return never, nil
	}
	return waiters.Millis(pttl.Ints[0]), nil
}

// watch has a node track the key of a lock, and returns for how long that lives there.
func (p *pushes) watch(g *Group, key string, node int, done <-chan struct{}) (time.Duration, error) {
	said, err := p.ask(g, key, node, done, func(b []byte) ([]byte, int) { return command.AppendWatch(b, key) })
	if err != nil {
		return 0, err
	}
	return p.isTracked(node, &said[0], &said[1])
}

// enter enters the queue of a node, or takes its gate.
func (p *pushes) enter(g *Group, key string, step waiters.Step, done <-chan struct{}) (e waiters.Entry, err error) {
	for load := false; !has(&p.gated, step.Node); load = true {
		said, err := p.ask(g, key, step.Node, done, func(b []byte) ([]byte, int) {
			loads := 0
			if load {
				b, loads = command.AppendLoadQueue(b)
			}
			b, n := command.AppendQueue(b, key, p.id, wayOf(step))
			return b, loads + n
		})
		if err != nil {
			return e, err
		}
		answer := said[:]
		if load {
			answer = said[1:]
		}
		switch call := &answer[0]; {
		case call.Code == "NOSCRIPT" && !load:
			continue
		case call.Lacks || load && said[0].Err != nil && !said[0].Later:
			p.refuse(g, step.Node, &p.gated, "node refuses the script by which processes queue up, they are not served in order", call.Err)
			continue
		case call.Err != nil:
			return e, call.Err
		}
		ttl, err := p.isTracked(step.Node, &answer[1], &answer[2])
		return waiters.EntryOfQueue(answer[0].Ints, ttl, command.FirstTicket), err
	}
	said, err := p.ask(g, key, step.Node, done, func(b []byte) ([]byte, int) {
		return command.AppendGate(b, key, p.id, wayOf(step), step.First)
	})
	if err != nil {
		return e, err
	}
	if said[0].Err != nil {
		return e, said[0].Err
	}
	left, err := p.isTracked(step.Node, &said[1], &said[2])
	return waiters.EntryOfGate(said[0].OK, step.Again, left, command.FirstTicket), err
}

// claim claims a gap in a lock for this process, among those in the queue of a node, and
// returns how long the last claim holds off others. Where the node refuses that, each process
// leaves gaps of its own.
func (p *pushes) claim(g *Group, key string, step waiters.Step, done <-chan struct{}) (own bool, left time.Duration, err error) {
	said, err := p.ask(g, key, step.Node, done, func(b []byte) ([]byte, int) {
		return command.AppendClaim(b, key, p.id, step.Claim)
	})
	return said[0].OK || said[0].Err != nil, waiters.Millis(said[1].Ints[0]), err
}

func wayOf(step waiters.Step) command.Way {
	if step.Again {
		return command.Again
	}
	return command.Enter
}

// leave leaves the queue of a node, or its gate, and does not wait for it.
func (p *pushes) leave(g *Group, key string, d departure) {
	q := g.engine.Query(d.Node, g.queryTimeout())
	switch {
	case !has(&p.gated, d.Node):
		q.Buf, q.Replies = command.AppendQueue(q.Buf, key, p.id, command.Leave)
	case d.First:
		q.Buf, q.Replies = command.AppendGate(q.Buf, key, p.id, command.Leave, false)
	default:
		q.Buf, q.Replies = command.AppendPing(q.Buf)
	}
	g.engine.Ask(q)
	q.Free()
}

// queryTimeout is how long a node has to answer a query.
func (g *Group) queryTimeout() time.Duration {
	if d := g.cfg.Engine.Timeout; d > 0 {
		return min(d, maxQueryTimeout)
	}
	return defaultQueryTimeout
}

const (
	defaultQueryTimeout = 50 * time.Millisecond
	maxQueryTimeout     = time.Second
)

// pushed takes a push in. The driver lock is held. It is a hint: a forged one has a waiter
// look in vain.
func (l *lines) pushed(node int, v *resp.Value) {
	l.pushes.heard[node].Add(1)
	it := v.Elements()
	if !it.Next() || string(it.Value().Bytes) != "invalidate" || !it.Next() {
		return
	}
	keys := *it.Value()
	if keys.Null { // the node has dropped all keys
		l.sentry.lose(node)
		return
	}
	for it := keys.Elements(); it.Next(); {
		name := it.Value().Bytes
		l.changed(node, name, command.OfLock)
		if key, of := command.CutName(name, l.pushes.id); of != command.OfLock {
			l.changed(node, key, of)
		}
	}
}

// released tells the line for key that this process has deleted the key on nodes, a bit
// each. These do not push it: what they push is the changes of others (NOLOOP). The driver
// lock is held.
func (l *lines) released(key []byte, nodes uint64) {
	if l.known.Load() == 0 {
		return
	}
	for ; nodes != 0; nodes &= nodes - 1 {
		l.changed(bits.TrailingZeros64(nodes), key, command.OfLock)
	}
}

// changed tells the line for key that a node has changed the key, or one beside it.
func (l *lines) changed(node int, key []byte, of command.Name) {
	s := l.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	wake, lookDue := s.table.Pushed(node, key, of == command.OfLock)
	if wake != nil {
		wake.Owner.ring()
	}
	if lookDue {
		l.sentry.vacate(string(key))
	}
}
