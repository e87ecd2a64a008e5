package client

import (
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/group"
	"github.com/redlock-go/redlock/internal/client/texts"
)

// What the root package shows of the rooms below, under the names of its users. It imports no other room of a client
// but texts.
type (
	Config    = group.Config
	Retry     = group.Retry
	Knobs     = knobs.Knobs
	Operation = engine.Op // any, as the engine has it
	Kind      = engine.Kind
	Attempt   = engine.Attempt
	Group     = group.Group
	Value     = group.Value // at a key
	Status    = group.Status

	Acquisition = group.Acquisition
)

// Limits of keys and TTLs.
const (
	MaxKey = engine.MaxKey
	MinTTL = engine.MinTTL
	MaxTTL = engine.MaxTTL
)

// The results of operations.
var (
	ErrTaken     = engine.ErrTaken
	ErrSplit     = engine.ErrSplit
	ErrNoQuorum  = engine.ErrNoQuorum
	ErrExpired   = engine.ErrExpired
	ErrNotHeld   = engine.ErrNotHeld
	ErrClosed    = engine.ErrClosed
	ErrBusy      = engine.ErrBusy
	ErrStopped   = engine.ErrStopped
	ErrForgotten = texts.ErrForgotten
	ErrNoAnswer  = engine.ErrNoAnswer
	ErrConfig    = engine.ErrConfig
	ErrArgument  = engine.ErrArgument
	ErrUnderWay  = engine.ErrUnderWay
)

// KindOf reads a number of the API: the kinds of operations on exclusive locks, and then of those on shared ones.
func KindOf(number uint8) (kind Kind, shared bool) {
	const kinds = uint8(engine.Release)
	if number > kinds && number <= 2*kinds {
		return Kind(number - kinds), true
	}
	return Kind(number), false
}

// WrongArgument returns an error that is [ErrArgument].
func WrongArgument(format string, args ...any) error { return engine.WrongArgument(format, args...) }
