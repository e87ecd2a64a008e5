package session

import (
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/quorum"
)

// Hooks are the root package's, which says what they hear and from where.
type Hooks struct {
	Attempt                       func(Attempt)
	Vote                          func(Vote)
	NodeUp, NodeDown, NodeGuarded func(Node)
	LockLost                      func(key string, err error)
}

// Node is how a node is at one moment.
type Node = conn.Node

// Attempt is one attempt that is over. The root package has the same type.
type Attempt struct {
	Kind                    engine.Kind
	Key                     string
	Duration                time.Duration
	Granted, Denied, Failed int
	Err                     error
}

// Vote is one vote. The root package has the same type.
type Vote struct {
	Kind    engine.Kind
	Node    int
	Addr    string
	Outcome quorum.Outcome
	Err     error
}

// over tells of an attempt that has ended with err.
func (s *Session) over(op *engine.Op, key string, err error) {
	if s.hooks.Attempt == nil {
		return
	}
	now := s.clock.Now()
	if err == nil && op.Kind == engine.Acquire && now >= op.Until {
		err = engine.ErrExpired // as its caller will find too
	}
	t := &op.Tally
	s.hooks.Attempt(Attempt{op.Kind, key, op.Took(now), t.Granted(), t.Denied(), t.Failed(), err})
}

// overdue counts and tells of an extend of a lock that has expired, which asked
// nobody.
func (s *Session) overdue(key string) {
	s.engine.Note(engine.Extend, engine.ErrExpired)
	if s.hooks.Attempt != nil {
		s.hooks.Attempt(Attempt{Kind: engine.Extend, Key: key, Err: engine.ErrExpired})
	}
}

// onVote is the engine's, or nil if nobody listens.
func (s *Session) onVote() func(int, engine.Kind, quorum.Outcome, error) {
	if s.hooks.Vote == nil {
		return nil
	}
	return func(node int, kind engine.Kind, o quorum.Outcome, err error) {
		s.hooks.Vote(Vote{kind, node, s.fleet.Addr(node), o, err})
	}
}

// nodeUp tells of a connection that came up. The role is held.
func (s *Session) nodeUp(i int) {
	s.engine.NodeUp(i) // which pays what is owed, before anything else is sent
	n := s.fleet.Node(i)
	if s.log != nil {
		s.log.Info("redlock: node is up", "node", n.Addr, "server", n.Server, "releases by", n.Dialect)
	}
	if s.hooks.NodeUp != nil {
		s.hooks.NodeUp(n)
	}
	if n.Guarded == 0 {
		return
	}
	if s.log != nil {
		s.log.Warn("redlock: node may have forgotten locks, and has no vote yet", "node", n.Addr, "for", n.Guarded)
	}
	if s.hooks.NodeGuarded != nil {
		s.hooks.NodeGuarded(n)
	}
}

// nodeDown tells of one that ended, or could not be made at first. The role is
// held.
func (s *Session) nodeDown(i int) {
	n := s.fleet.Node(i)
	if s.log != nil {
		s.log.Warn("redlock: node is down", "node", n.Addr, "error", n.Err)
	}
	if s.hooks.NodeDown != nil {
		s.hooks.NodeDown(n)
	}
}

// lost tells that a lock is gone, unless that is known.
func (h Hold) lost(key string, err error) {
	if f := h.session.hooks.LockLost; f != nil && !h.lease.Told(h.life, true) {
		f(key, err)
	}
}
