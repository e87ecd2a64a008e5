package quorum

import "strconv"

// Verdict is the result of the votes of a round so far. Pending is a third value, so a round can end early in both
// directions. The zero value is no verdict.
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

// String returns "pending", "won" or "lost", and "verdict(N)" for any other value. Only the last allocates.
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
