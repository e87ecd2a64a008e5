package session

import (
	"context"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/token"
)

// Mint makes t a fresh token.
func (s *Session) Mint(t *token.Token) error {
	if err := t.Fill(s.rand); err != nil {
		return fmt.Errorf("redlock: %w", err)
	}
	return nil
}

// Submit begins an operation of a caller who does not wait for it.
func (s *Session) Submit(op *engine.Op) error {
	err := s.engine.Submit(op)
	if (err == engine.ErrBusy || err == engine.ErrClosed) && s.hooks.Attempt != nil {
		s.over(op, string(op.Key), err)
	}
	return err
}

// Completed tells of an operation that was submitted and has its result. It is
// called before the operation is its caller's again.
func (s *Session) Completed(op *engine.Op) {
	if s.hooks.Attempt != nil {
		s.over(op, string(op.Key), s.Explain(op))
	}
}

// Cancel takes an operation back, or returns false if it is too late.
func (s *Session) Cancel(op *engine.Op) bool {
	ours := s.engine.Cancel(op)
	if ours && s.hooks.Attempt != nil {
		s.over(op, string(op.Key), context.Canceled)
	}
	return ours
}

// Left is how long it is until an instant of the session's clock, or 0.
func (s *Session) Left(until time.Duration) time.Duration { return max(0, until-s.clock.Now()) }
