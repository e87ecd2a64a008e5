package engine

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/quorum"
)

// Observer learns what a driver finds out beside the results of operations. These are all calls upwards under the
// driver lock, but for the Completion and the Repairer of operations. They do not block, and run no user code.
type Observer interface {
	// NodeChanged learns what has changed about a node; a is its answer for NoVote.
	NodeChanged(node int, c Change, a fencing.Answer)
	// KeyChanged learns that nodes may have another value at a key than before. If own, this engine has released the
	// key there; else a node has pushed it. A nil key is all keys.
	KeyChanged(nodes quorum.Set, key []byte, own bool)
}

// Change is what has changed about a node.
type Change uint8

const (
	Up     Change = 1 + iota // it has a new connection, with nothing sent on it yet
	Down                     // its connection has ended, or its first dial has failed
	NoVote                   // it has no vote in fenced acquires, or belongs to another fleet
)

// unobserved is the Observer of an engine without one.
type unobserved struct{}

func (unobserved) NodeChanged(int, Change, fencing.Answer) {}
func (unobserved) KeyChanged(quorum.Set, []byte, bool)     {}

// Repairer is a lock, asked by the engine about repairs, and about extends that a node wants to have once more. The
// driver lock is held.
type Repairer interface {
	// IsHeld reports whether a life of the lock goes on, and no release was asked for.
	IsHeld(life uint64) bool
	// Repair returns for how long a node may be given the key of a life of the lock again,
	// or 0. If it does, the node may have the key from now on, and the lock's release must
	// reach it.
	Repair(life uint64, node int, now clock.Instant) time.Duration
}
