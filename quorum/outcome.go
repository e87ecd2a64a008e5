package quorum

import "strconv"

// Outcome is the vote of one node in one round. The zero value is no outcome,
// so that a forgotten assignment cannot be counted as a vote.
type Outcome uint8

const (
	// Granted: the node did what the round asked for.
	Granted Outcome = 1 + iota
	// Denied: the node answered, and the key is not ours: another token holds
	// it, or, when extending, no token does any more.
	Denied
	// Failed: the node gave no usable answer. It may or may not have applied
	// the command, so it cannot help to win, and what it may have applied
	// has to be released.
	Failed
)

// String returns "granted", "denied" or "failed", and "outcome(N)" for a value
// that is none of them. Only the last allocates.
func (o Outcome) String() string {
	switch o {
	case Granted:
		return "granted"
	case Denied:
		return "denied"
	case Failed:
		return "failed"
	}
	return "outcome(" + strconv.Itoa(int(o)) + ")"
}
