package engine

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
)

// Config configures an [Engine].
type Config struct {
	Clock      clock.Clock
	Quorum     *quorum.Config // of the fleet's nodes; nil is a majority of all
	MaxWaiting int            // bounds the operations waiting to be sent
	// MaxInFlight is how many replies a node may owe beside those of queries; 0 is no bound. The window takes half of
	// it: a node that keeps up is not cut off by a burst.
	MaxInFlight int
	MaxTTL      time.Duration // of any operation; 0 is the limit MaxTTL
	Timeout     time.Duration // for the nodes to answer; 0 means it follows from the TTL
	// OnVote is called for every vote, as callbacks are; it may be nil.
	OnVote func(Vote)
	// Observer learns what the driver finds out beside results; it may be nil.
	Observer Observer
	// Fence is for fenced acquires and extends, or nil. The driver lock protects it.
	Fence *command.Fence
	// OnPanic is called after the panic of a callback; it may be nil.
	OnPanic func(v any, stack []byte)
	Peers   *Peers // the engines of the client; nil: there is one
}

// limits checks the arguments of an engine's operations.
type limits struct {
	timeout  time.Duration // for the nodes to answer; 0: it follows from the TTL
	maxTTL   time.Duration
	reserved string // key, or ""
}

// check refuses wrong arguments, rounds the TTL down to whole milliseconds
// and sets the timeout. It runs once for each operation: Submit begins with it, and
// so does Call.
func (lim *limits) check(op *Op) error {
	switch {
	case op.Kind == 0 || op.Kind >= command.Kinds:
		return WrongArgument("operation has kind %d, want 1 to %d", op.Kind, 2*Release)
	case op.Done == nil:
		return WrongArgument("operation has no Done")
	}
	if err := lim.CheckKey(op.Key); err != nil {
		return err
	}
	op.Timeout = lim.timeout
	if !op.Kind.HasTTL() {
		op.TTL = 0
		if op.Timeout == 0 {
			op.Timeout = MaxTimeout
		}
		return nil
	}
	given := op.TTL
	op.TTL = given.Truncate(time.Millisecond)
	if op.TTL < MinTTL || op.TTL > lim.maxTTL {
		limit := ""
		if lim.maxTTL < MaxTTL {
			limit = " (MaxTTL)"
		}
		return WrongArgument("ttl is %v, from %v to %v%s are allowed", given, MinTTL, lim.maxTTL, limit)
	}
	if op.Timeout == 0 {
		op.Timeout = min(op.TTL/20, MaxTimeout)
	}
	return nil
}

// CheckKey refuses a wrong key.
func (lim *limits) CheckKey(key []byte) error {
	switch {
	case len(key) == 0:
		return WrongArgument("key is empty, 1 to %d bytes are allowed", MaxKey)
	case len(key) > MaxKey:
		return WrongArgument("key has %d bytes, at most %d are allowed", len(key), MaxKey)
	case string(key) == lim.reserved:
		return WrongArgument("key is reserved: the nodes keep the fencing tokens there")
	}
	return nil
}
