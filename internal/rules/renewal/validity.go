package renewal

import "time"

// Validity is the end of a lock's validity. It only moves forward: no extend shortens a key at a
// node. So an extend without a result, or with late bytes, changes nothing for the worse.
type Validity struct {
	ttl   time.Duration // of the last successful extension
	until time.Duration // 0: the lock is lost
}

// Begin is the validity of a lock acquired with a TTL.
func Begin(ttl, until time.Duration) Validity { return Validity{ttl, until} }

// TTL is the TTL of renewals.
func (v *Validity) TTL() time.Duration { return v.ttl }

// Until is when validity ends.
func (v *Validity) Until() time.Duration { return v.until }

// Pass passes the lock on to a holder asking for ttl, and returns the end of validity. It refuses
// if less than 7/8 of ttl is left, or more than ttl. The next renewals ask for ttl.
func (v *Validity) Pass(now, ttl time.Duration) (until time.Duration, ok bool) {
	if left := v.until - now; left < ttl-ttl/8 || left > ttl {
		return 0, false
	}
	v.ttl = ttl
	return v.until, true
}

// Repair is how long a node without the key may be given it again: the copy ends with the certain
// validity. It is 0 once that is over.
func (v *Validity) Repair(now time.Duration) time.Duration {
	return max(0, v.until-now).Truncate(time.Millisecond)
}

// Result is the result of an extension.
type Result uint8

const (
	Unknown Result = iota // nodes may apply it, or may not
	Won                   // a quorum has applied it
	Lost                  // too few nodes have the key
)

// Extended notes the result of an extension by ttl. If it has won, validity lasts to until at
// least.
func (v *Validity) Extended(ttl, until time.Duration, r Result) {
	switch {
	case r == Lost:
		v.until = 0
	case r == Won && v.until != 0: // once lost, for ever
		v.ttl, v.until = ttl, max(v.until, until)
	}
}
