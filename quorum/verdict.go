package quorum

import "strconv"

// Verdict is the result of the votes of a round so far. Pending is a third value, so
// that a round can end early in both directions. The zero value is no verdict.
type Verdict uint8

const (
	// Pending: the votes still out decide.
	Pending Verdict = 1 + iota
	// Won: a quorum has granted. Whether the lock is still valid depends on
	// the time; see [Until].
	Won
	// Lost: a quorum can no longer grant, however the remaining nodes vote.
	Lost
)

// String returns "pending", "won" or "lost", and "verdict(N)" for a value that
// is none of them. Only the last allocates.
func (v Verdict) String() string {
	switch v {
	case Pending:
		return "pending"
	case Won:
		return "won"
	case Lost:
		return "lost"
	}
	return "verdict(" + strconv.Itoa(int(v)) + ")"
}

// Reason says why a round was lost, so that a caller can tell "try again when
// the holder is done" from "look at your nodes". The zero value is no reason.
type Reason uint8

const (
	// Conflict: enough nodes answered, and at least one of them denied.
	// Another client holds the lock, or several are splitting the vote.
	Conflict Reason = 1 + iota
	// NoQuorum: more nodes failed than the round tolerates, so those that
	// answered could not have made a quorum even if all of them had granted.
	NoQuorum
)

// String returns "conflict" or "no quorum", and "reason(N)" for a value that is
// neither. Only the last allocates.
func (r Reason) String() string {
	switch r {
	case Conflict:
		return "conflict"
	case NoQuorum:
		return "no quorum"
	}
	return "reason(" + strconv.Itoa(int(r)) + ")"
}
