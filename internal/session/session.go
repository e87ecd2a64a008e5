// Package session is what one client has open: its nodes, the engine that asks
// them, and the locks that it holds. It decides what the calls of the root
// package do; the root package says what they promise.
//
//	Open ─> Session.Acquire ─┬─> engine ─> conn, quorum
//	             │           └─> token, clock
//	             └─> Hold.Extend, Hold.Release ─> lease, engine
package session

import (
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/clock"
	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/internal/engine"
)

// Session is the connections to the nodes and everything that goes through
// them. It is safe for concurrent use.
type Session struct {
	clock  clock.Clock
	engine *engine.Engine
	fleet  *conn.Fleet
	leases sync.Pool // of *lease.Lease
	closed sync.Once
	log    *slog.Logger // or nil
	hooks  Hooks

	rand               io.Reader
	retryMin, retryMax time.Duration
	closeTimeout       time.Duration
}

// Open checks cfg, connects to the nodes, and waits until each of them has
// answered or failed a first time.
func Open(cfg Config) (*Session, error) {
	cfg, err := cfg.check()
	if err != nil {
		return nil, fmt.Errorf("redlock: config: %w", err)
	}
	s := &Session{
		clock:    clock.System(),
		log:      cfg.Logger,
		hooks:    cfg.Hooks,
		rand:     cfg.Rand,
		retryMin: cfg.RetryMin, retryMax: cfg.RetryMax,
		closeTimeout: cfg.CloseTimeout,
	}
	s.engine = engine.New(engine.Config{Clock: s.clock, MaxWaiting: cfg.MaxWaiting, MaxTTL: cfg.MaxTTL, Timeout: cfg.NodeTimeout, OnVote: s.onVote(), OnPanic: s.onPanic})
	cfg.Conn.Clock = s.clock
	cfg.Conn.Probes = func() conn.Prober { return command.NewProbes(cfg.Scripted) }
	cfg.Conn.OnUp, cfg.Conn.OnDown = s.nodeUp, s.nodeDown
	role := s.engine.DriverLock()
	role.Lock() // a dialler that is quick must find s.fleet
	s.fleet, err = conn.New(cfg.Conn, role)
	role.Unlock()
	if err != nil {
		return nil, fmt.Errorf("redlock: %w", err)
	}
	s.engine.Start(s.fleet)
	s.fleet.AwaitFirstDials()
	if err := s.inspect(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// inspect looks at what became of the first dials. A node that cannot be one
// is an error; one that could not be reached is news.
func (s *Session) inspect() (err error) {
	s.engine.DriverLock().Lock()
	defer s.engine.DriverLock().Unlock()
	for i := range s.fleet.Len() {
		switch n := s.fleet.Node(i); {
		case conn.Misconfigured(n.Err):
			err = fmt.Errorf("redlock: node %d: %w", i, n.Err)
		case n.Connects == 0:
			s.nodeDown(i)
		}
	}
	return err
}

// Stats returns what was counted, and shows each node with its votes. All of it
// is of one moment.
func (s *Session) Stats(show func(n Node, v engine.Votes)) engine.Stats {
	s.engine.DriverLock().Lock()
	defer s.engine.DriverLock().Unlock()
	for i := range s.fleet.Len() {
		show(s.fleet.Node(i), s.engine.Votes(i))
	}
	return s.engine.Stats()
}

// Len is the number of nodes.
func (s *Session) Len() int { return s.fleet.Len() }

// Close refuses what is new, waits a bounded time for what is under way, and
// frees everything.
func (s *Session) Close() {
	s.closed.Do(func() { s.engine.Close(s.closeTimeout) })
}
