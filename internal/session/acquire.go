package session

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/quorum"
)

// TryAcquire makes one attempt.
func (s *Session) TryAcquire(ctx context.Context, key string, ttl time.Duration) (Hold, error) {
	w := s.engine.Call(engine.Acquire, key, ttl)
	defer s.engine.Free(w)
	return s.attempt(orBackground(ctx), w, key)
}

// Acquire makes attempts, with pauses between them, until one wins, one fails
// for a reason that stays, or ctx ends.
func (s *Session) Acquire(ctx context.Context, key string, ttl time.Duration) (Hold, error) {
	ctx = orBackground(ctx)
	w := s.engine.Call(engine.Acquire, key, ttl)
	defer s.engine.Free(w)
	for {
		h, err := s.attempt(ctx, w, key)
		switch {
		case err == engine.ErrTaken, err == engine.ErrExpired, err == engine.ErrBusy, errors.Is(err, engine.ErrNoQuorum):
		default:
			return h, err
		}
		if err := w.Pause(ctx, s.retryMin+rand.N(s.retryMax-s.retryMin+1)); err != nil {
			return Hold{}, err
		}
	}
}

// attempt is one try, with a token of its own.
func (s *Session) attempt(ctx context.Context, w *engine.Call, key string) (Hold, error) {
	if err := ctx.Err(); err != nil {
		return Hold{}, err
	}
	if err := s.Mint(&w.Token); err != nil {
		return Hold{}, err
	}
	if err := s.engine.Check(&w.Op); err != nil {
		return Hold{}, err // it was no attempt
	}
	err := s.engine.Do(ctx, w)
	if err == nil {
		err = s.Explain(&w.Op)
	}
	if err == nil && s.isLate(w) { // this goroutine may have waited long to run again
		s.engine.Late(&w.Op)
		err = engine.ErrExpired
	}
	s.tell(w, key, err)
	if err != nil {
		return Hold{}, err
	}
	l, _ := s.leases.Get().(*lease.Lease)
	if l == nil {
		l = new(lease.Lease)
	}
	return Hold{s, l, l.Begin(key, w.Token, w.Until, w.Absent)}, nil
}

// tell tells the hook of an acquire. The hook is user code: if it panics, no handle
// will exist by which the lock could be released.
func (s *Session) tell(w *engine.Call, key string, err error) {
	if s.hooks.Attempt == nil {
		return
	}
	told := false
	defer func() {
		if !told && err == nil {
			s.engine.Abandon(&w.Op)
		}
	}()
	s.over(&w.Op, key, err)
	told = true
}

func (s *Session) isLate(w *engine.Call) bool { return s.clock.Now() >= w.Until }

// Explain turns the result of an operation into an error with the details. Only
// those that a caller should look into have any, and allocate.
func (s *Session) Explain(op *engine.Op) error {
	if op.Err != engine.ErrNoQuorum {
		return op.Err
	}
	e := &quorum.RoundError{Cause: op.Err, Nodes: s.fleet.Len(), Granted: op.Tally.Granted(), Denied: op.Tally.Denied()}
	for _, f := range op.Failures {
		e.Failed = append(e.Failed, quorum.NodeError{Node: f.Node, Addr: s.fleet.Addr(f.Node), Err: f.Err})
	}
	return e
}
