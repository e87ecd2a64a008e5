package fencing

import "github.com/redlock-go/redlock/internal/base/clock"

// RejoinAt is a Rejoin in the middle of its steps.
func RejoinAt(f Fleet, node int, s Step, nonce string, due clock.Instant, read Memory, floor Token) Rejoin {
	return Rejoin{fleet: f, node: node, step: s, Nonce: nonce, Due: due, read: read, Floor: floor}
}

// String is the name in the protocol's text.
func (c Code) String() string {
	return [...]string{"none", "OK", "HELD", "STALE", "LOW", "AMNESIA", "ACTIVE", "FOREIGN", "GONE", "INVALID"}[c]
}
