package renewal

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// Validity is the end of a lock's validity. It only moves forward: no extend shortens a key at a
// node. So an extend without a result, or with late bytes, changes nothing for the worse.
type Validity struct {
	TTL   time.Duration // of the last successful extension, and of renewals
	Until clock.Instant // 0: the lock is lost
}

// Pass passes the lock on to a holder asking for ttl, and returns the end of validity. It refuses
// if less than 7/8 of ttl is left, or more than ttl. The next renewals ask for ttl.
func (v *Validity) Pass(now clock.Instant, ttl time.Duration) (until clock.Instant, ok bool) {
	if left := v.Until.Sub(now); left < ttl-ttl/8 || left > ttl {
		return 0, false
	}
	v.TTL = ttl
	return v.Until, true
}

// Repair is the TTL with which a node without the key may be given it again: the copy ends with the certain validity.
// It is 0 once that is over.
func (v *Validity) Repair(now clock.Instant) time.Duration {
	return max(0, v.Until.Sub(now)).Truncate(time.Millisecond)
}

// Result is the result of an extension.
type Result uint8

const (
	Unknown Result = iota // nodes may apply it, or may not
	Won                   // a quorum has applied it
	Lost                  // too few nodes have the key
)

// Extended notes the result of an extension. If it has won, validity lasts at least as long as the extension's own.
func (v *Validity) Extended(by Validity, r Result) {
	switch {
	case r == Lost:
		v.Until = 0
	case r == Won && v.Until != 0: // once lost, for ever
		v.TTL, v.Until = by.TTL, max(v.Until, by.Until)
	}
}
