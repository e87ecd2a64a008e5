// Package session is what one client has open: its nodes, the engine that asks
// them, and the locks that it holds. It decides what the calls of the root
// package do; the root package says what they promise.
//
//	Open ─> Session.Acquire ─┬─> engine ─> conn, quorum
//	             │           └─> token, clock
//	             └─> Hold.Extend, Hold.Release ─> lease, engine
package session

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/clock"
	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/script"
	"github.com/redlock-go/redlock/internal/token"
)

// Session is the connections to the nodes and everything that goes through
// them. It is safe for concurrent use.
type Session struct {
	clock  clock.Clock
	engine *engine.Engine
	fleet  *conn.Fleet
	leases sync.Pool // of *lease.Lease
	closed sync.Once

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
		rand:     cfg.Rand,
		retryMin: cfg.RetryMin, retryMax: cfg.RetryMax,
		closeTimeout: cfg.CloseTimeout,
	}
	s.engine = engine.New(engine.Config{Clock: s.clock, MaxWaiting: cfg.MaxWaiting, Timeout: cfg.NodeTimeout})
	cfg.Conn.Clock = s.clock
	cfg.Conn.Scripts = []conn.Script{
		{Text: script.Release, SHA1: script.ReleaseSHA1},
		{Text: script.Extend, SHA1: script.ExtendSHA1},
	}
	s.fleet, err = conn.New(cfg.Conn, s.engine.Role())
	if err != nil {
		return nil, fmt.Errorf("redlock: %w", err)
	}
	s.engine.Start(s.fleet)
	s.fleet.Settle()
	if err := s.twins(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// twins finds a node that is another one under a second address.
func (s *Session) twins() (err error) {
	s.engine.Role().Lock()
	defer s.engine.Role().Unlock()
	for i := range s.fleet.Len() {
		if fault := s.fleet.Fault(i); errors.Is(fault, conn.ErrSameServer) {
			err = fmt.Errorf("redlock: node %d: %w", i, fault)
		}
	}
	return err
}

// Close refuses what is new, waits a bounded time for what is under way, and
// frees everything.
func (s *Session) Close() {
	s.closed.Do(func() { s.engine.Close(s.closeTimeout) })
}

// Mint makes t a fresh token.
func (s *Session) Mint(t *token.Token) error {
	if err := t.Fill(s.rand); err != nil {
		return fmt.Errorf("redlock: %w", err)
	}
	return nil
}

// Submit begins an operation of a caller who does not wait for it.
func (s *Session) Submit(op *engine.Op) error { return s.engine.Submit(op) }

// Cancel takes it back, or returns false if it is too late.
func (s *Session) Cancel(op *engine.Op) bool { return s.engine.Cancel(op) }

// Left is how long it is until an instant of the session's clock, or 0.
func (s *Session) Left(until time.Duration) time.Duration { return max(0, until-s.clock.Now()) }
