package engine

import (
	"errors"
	"fmt"
	"time"
)

// Limits of what can be asked for. The root package exports these.
const (
	MaxKey = 4 << 10               // bytes
	MinTTL = 10 * time.Millisecond // of which 2.1 ms are drift
	MaxTTL = 365 * 24 * time.Hour
)

// maxTimeout is the default of how long nodes have to answer, unless a
// twentieth of the TTL is less. The algorithm's text asks for "~ 5-50
// milliseconds" with a TTL of 10 s.
const maxTimeout = 50 * time.Millisecond

// check refuses what cannot be asked, rounds the TTL down to whole milliseconds
// and sets the timeout. It runs once for each operation: Submit begins with it, and
// so does Call.
func (e *Engine) check(op *Op) error {
	switch {
	case op.Kind < Acquire || op.Kind > Release:
		return errors.New("redlock: operation has no kind")
	case op.Done == nil:
		return errors.New("redlock: operation has no Done")
	case len(op.Key) == 0:
		return errors.New("redlock: key is empty")
	case len(op.Key) > MaxKey:
		return fmt.Errorf("redlock: key has %d bytes, at most %d are allowed", len(op.Key), MaxKey)
	}
	op.Timeout = e.timeout
	if op.Kind == Release { // has no TTL
		op.TTL = 0
		if op.Timeout == 0 {
			op.Timeout = maxTimeout
		}
		return nil
	}
	op.TTL = op.TTL.Truncate(time.Millisecond)
	if op.TTL < MinTTL || op.TTL > e.maxTTL {
		return fmt.Errorf("redlock: ttl is %v, from %v to %v are allowed", op.TTL, MinTTL, e.maxTTL)
	}
	if op.Timeout == 0 {
		op.Timeout = min(op.TTL/20, maxTimeout)
	}
	return nil
}
