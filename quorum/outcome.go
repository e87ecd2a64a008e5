package quorum

import "strconv"

// Outcome is the vote of one node in one round. The zero value is no vote, so a forgotten assignment does not count
// as one.
type Outcome uint8

const (
	// Granted: the node did what the round asked for.
	Granted Outcome = 1 + iota
	// Denied: the node answered, and the key does not hold our token: it holds
	// another one, or, when extending or releasing, none any more.
	Denied
	// Failed: the node gave no usable answer. It may or may not have applied the command, so its vote cannot help to
	// win, and the command, perhaps applied, has to be undone by a release.
	Failed
)

// String returns "granted", "denied" or "failed", and "outcome(N)" for any other value. Only the last allocates.
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
