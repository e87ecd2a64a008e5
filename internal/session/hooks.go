package session

import (
	"log/slog"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/command"
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
	t := &op.Tally
	s.hooks.Attempt(Attempt{op.Kind, key, op.Took(s.clock.Now()), t.Granted(), t.Denied(), t.Failed(), err})
}

// unasked counts and tells of an extend that no node was asked for, since its lock
// has expired or was released.
func (s *Session) unasked(key string, err error) {
	s.engine.Note(engine.Extend, err)
	if s.hooks.Attempt != nil {
		s.hooks.Attempt(Attempt{Kind: engine.Extend, Key: key, Err: err})
	}
}

// onVote is the engine's, or nil if no hook wants it.
func (s *Session) onVote() func(int, engine.Kind, quorum.Outcome, error) {
	if s.hooks.Vote == nil {
		return nil
	}
	return func(node int, kind engine.Kind, o quorum.Outcome, err error) {
		s.hooks.Vote(Vote{kind, node, s.fleet.Addr(node), o, err})
	}
}

// onPanic logs a panic of a callback, or of a hook. It must not go unseen.
func (s *Session) onPanic(v any, stack []byte) {
	log := s.log
	if log == nil {
		log = slog.Default()
	}
	log.Error("redlock: a callback panicked", "panic", v, "stack", string(stack))
}

// nodeUp sees to a connection that came up. The driver's role is held, so the hooks
// and the log hear of it later.
func (s *Session) nodeUp(i int) {
	s.engine.NodeUp(i) // hands off, before anything else is sent
	n := s.fleet.Node(i)
	s.tellOf(func() {
		s.log.Info("redlock: node is up", "node", n.Addr, "server", n.Server, "releases by", command.Form(n.Form))
	}, s.hooks.NodeUp, n)
	if n.Guarded > 0 {
		s.tellOf(func() {
			s.log.Warn("redlock: node may have forgotten locks, and has no vote yet", "node", n.Addr, "for", n.Guarded)
		}, s.hooks.NodeGuarded, n)
	}
}

// nodeDown sees to one that ended, or could not be made at first. The driver's role
// is held.
func (s *Session) nodeDown(i int) {
	n := s.fleet.Node(i)
	s.tellOf(func() {
		s.log.Warn("redlock: node is down", "node", n.Addr, "error", n.Err)
	}, s.hooks.NodeDown, n)
}

// tellOf has the log and a hook hear of a node. One that panics does not keep the
// other from it.
func (s *Session) tellOf(log func(), hook func(Node), n Node) {
	if s.log != nil {
		s.engine.Tell(log)
	}
	if hook != nil {
		s.engine.Tell(func() { hook(n) })
	}
}

// lost tells that a lock is gone, unless that is known.
func (h Hold) lost(key string, err error) {
	if f := h.session.hooks.LockLost; f != nil && h.lease.Report(h.life) {
		f(key, err)
	}
}
