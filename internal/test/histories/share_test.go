package histories

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
)

// TestShares: callers who share locks, and others beside them, live through histories with all faults.
func TestShares(t *testing.T) {
	t.Parallel()
	live(t, seeds(), newSharing, sharingLimits, func(*history) {})
}

// sharingLimits: a gate lasts for a second where the caller for whom it is up does not come for its turn.
func sharingLimits(*plan) bounds {
	b := limits
	b.alone = 1300 * time.Millisecond
	return b
}

func newSharing(seed uint64) *plan {
	p := newPlan(seed)
	p.shares, p.stir.operators = true, 0                                                       // an operator frees strings
	p.deny = slices.DeleteFunc(p.deny, func(command string) bool { return command == "ZADD" }) // shared locks need it
	return p
}

// share shares a lock once, in one of all ways.
func (u *caller) share() {
	ctx, cancel := u.limited()
	defer cancel()
	key, ttl, began := u.key(), u.ttl(), time.Now()
	var l redlock.Lock
	var err error
	what := "acquire"
	calling, done := u.wants(ctx, key)
	switch u.IntN(4) {
	case 0:
		done()
		what = "try"
		calling, done = u.stall(ctx, nil)
		l, err = u.client.TryAcquireShared(calling, key, ttl)
	default:
		l, err = u.client.AcquireShared(calling, key, ttl)
	}
	done()
	if !u.check(what, began, err) {
		return
	}
	b := u.ledger.lockOf(u.who, u.machine, u.process, l, true)
	require.Zero(u.T, l.Fence())
	switch u.IntN(4) {
	case 0:
		u.kept(l, b, ttl)()
	case 1:
		u.hold(ttl, l)
		began := time.Now()
		u.check("extend", began, l.Extend(ctx, u.ttl()))
	default:
		u.hold(ttl, l)
	}
	u.finish(l, b)
}
