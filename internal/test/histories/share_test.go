package histories

import (
	"slices"
	"testing"
	"time"
)

// TestShares: callers who share locks, and others beside them, live through histories with all faults.
func TestShares(t *testing.T) {
	t.Parallel()
	live(t, seeds(), newSharing, func(*history) {})
}

func newSharing(seed uint64) *plan {
	p := newPlan(seed)
	p.shares, p.stir.operators = true, 0                                                       // an operator frees strings
	p.deny = slices.DeleteFunc(p.deny, func(command string) bool { return command == "ZADD" }) // shared locks need it
	p.alone = 1300 * time.Millisecond                                                          // a gate lasts for a second where the caller for whom it is up does not come for its turn
	return p
}
