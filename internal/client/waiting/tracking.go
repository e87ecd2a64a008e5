package waiting

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/rules/contention"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
)

// tracking is what each node does for waiters: it reports changed keys (nodes call this tracking), and has queues of
// processes. The first query in need of it switches tracking on for a connection, and tries it: a node is not used if
// its pushes do not arrive, or if it refuses the script of the queue.
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

func (p *tracking) init(l *Lines) { p.lines, p.id = l, strconv.FormatUint(rand.Uint64()|1<<63, 16) }

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
	l.sentry.lose(node)
}

var (
	errGivenUp = errors.New("the waiter has given up")
	errRefused = errors.New("the node refuses what waiting needs")
)

// ask has a node do what needs tracking, and returns the first replies to it.
func (p *tracking) ask(key string, node int, done <-chan struct{}, write func([]byte) ([]byte, int)) (said [4]command.Said, err error) {
	cfg := &p.lines.cfg
	q := cfg.Engine.Query(node, cfg.QueryTimeout)
	defer q.Free()
	begins, heard, skip := !p.tracks.Has(node), p.heard[node].Load(), 0
	if begins {
		q.Buf, skip = command.AppendTracking(q.Buf, key, p.id)
	}
	var n int
	q.Buf, n = write(q.Buf)
	q.Replies = skip + n
	cfg.Engine.Ask(q)
	select {
	case <-q.Answered():
	case <-done:
		return said, errGivenUp
	case <-cfg.Ending:
		return said, errGivenUp
	}
	if q.Err != nil {
		if engine.IsTimeout(q.Err) {
			p.silence(node)
		}
		return said, q.Err
	}
	if begins {
		var refused command.Said // the first error reply
		if i := slices.IndexFunc(q.Said[:skip], func(s command.Said) bool { return s.Err != nil }); i >= 0 {
			refused = q.Said[i]
		}
		switch err := refused.Err; {
		case refused.Later, refused.OfKey: // for now, or for this lock alone
			return said, err
		case err != nil || p.heard[node].Load() == heard:
			return said, p.refuse(node, "node does not report when a lock is freed, waiters poll", err)
		}
		p.tracks.Add(node)
	}
	copy(said[:], q.Said[skip:])
	return said, nil
}

// refuse notes that a node refuses what waiting needs, and logs it once.
func (p *tracking) refuse(node int, what string, err error) error {
	p.denied.Add(node)
	p.usable.Remove(node)
	if log := p.lines.cfg.Logger; log != nil && p.logged.Add(node) {
		p.lines.cfg.Engine.Announce([]func(){func() { log.Warn("redlock: "+what, "node", p.lines.cfg.Nodes[node], "error", err) }})
	}
	return errRefused
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

// watch has a node track the key of a lock, and returns how long the key lives there.
func (p *tracking) watch(key string, node int, done <-chan struct{}) (time.Duration, error) {
	said, err := p.ask(key, node, done, func(b []byte) ([]byte, int) { return command.AppendWatch(b, key) })
	if err != nil {
		return 0, err
	}
	return p.isTracked(node, &said[0], &said[1])
}

// enter enters the queue of a node.
func (p *tracking) enter(key string, step contention.Step, done <-chan struct{}) (e contention.Entry, err error) {
	way := command.Enter
	if step.Again {
		way = command.Again
	}
	said, err := p.ask(key, step.Node, done, func(b []byte) ([]byte, int) { return command.AppendQueue(b, key, p.id, way) })
	switch call := &said[0]; {
	case err != nil:
		return e, err
	case call.Lacks:
		return e, p.refuse(step.Node, "node refuses the script by which processes queue up", call.Err)
	case call.Err != nil:
		return e, call.Err
	}
	ttl, err := p.isTracked(step.Node, &said[1], &said[2])
	return contention.EntryOfQueue(said[0].Ints, ttl, command.FirstTicket), err
}

// claim claims a gap in a lock for this process, among those in the queue of a node, and returns how long the last
// claim holds off others. Where the node refuses claims, each process leaves gaps of its own.
func (p *tracking) claim(key string, step contention.Step, done <-chan struct{}) (own bool, left time.Duration, err error) {
	said, err := p.ask(key, step.Node, done, func(b []byte) ([]byte, int) {
		return command.AppendClaim(b, key, p.id, step.Claim)
	})
	return said[0].OK || said[0].Err != nil, contention.Millis(said[1].Ints[0]), err
}

// departure is the places of a line to be left, in the queues of nodes.
type departure struct {
	nodes quorum.Set
	key   string
}

// departureOf gives up the process's places for a line.
func departureOf(l *line) departure { return departure{l.contender.Depart(), l.key} }

// leave leaves queues, and does not wait for the nodes. No lock is held: the driver takes those of shards.
func (p *tracking) leave(d departure) {
	for node := range d.nodes.All() {
		p.pushLeave(stay{key: d.key, node: node})
	}
	if d.nodes != 0 {
		p.lines.cfg.Engine.Drive()
	}
}

// silence notes that a node has not answered in time. It is not used until it does.
func (p *tracking) silence(node int) {
	p.silent.Add(node)
	p.usable.Remove(node)
	p.lines.sentry.lose(node)
}

// speaks notes that a node has answered.
func (p *tracking) speaks(node int) {
	if p.silent.Has(node) {
		p.silent.Remove(node)
		if !p.denied.Has(node) {
			p.usable.Add(node)
		}
	}
}
