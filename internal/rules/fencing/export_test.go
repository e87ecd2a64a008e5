package fencing

import "github.com/redlock-go/redlock/internal/base/clock"

// RecoveryAt is a Recovery in the middle of its steps.
func RecoveryAt(f Fleet, node int, nonce string, due clock.Instant, read Memory, floor Token) Recovery {
	return Recovery{Fleet: f, Node: node, Nonce: nonce, Due: due, read: read, Floor: floor}
}

// String is the name in the protocol's text.
func (c Code) String() string {
	return [...]string{"none", "OK", "HELD", "STALE", "LOW", "AMNESIA", "ACTIVE", "FOREIGN", "GONE", "INVALID"}[c]
}
