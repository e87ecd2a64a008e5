package renewal

import "time"

// Validity is the end of a lock's validity. It moves forward alone: no extend shortens a key at a node,
// so one without a result, and one whose bytes arrive late, change nothing for the worse.
type Validity struct {
	ttl   time.Duration // of the last extension that has won
	until time.Duration // 0: the lock is lost
}

// Begin is the validity of a lock that was acquired with a TTL.
func Begin(ttl, until time.Duration) Validity { return Validity{ttl, until} }

// TTL is the one by which the lock is renewed.
func (v *Validity) TTL() time.Duration { return v.ttl }

// Until is when validity ends.
func (v *Validity) Until() time.Duration { return v.until }

// Pass has the lock pass on to a holder that has asked for ttl, and returns when validity
// ends. It does not if the holder would have less than 7/8 of that, or more than it. The next
// renewals ask for ttl.
func (v *Validity) Pass(now, ttl time.Duration) (until time.Duration, ok bool) {
	if left := v.until - now; left < ttl-ttl/8 || left > ttl {
		return 0, false
	}
	v.ttl = ttl
	return v.until, true
}

// Repair is for how long a node that lacks the key may be given it again: its copy ends
// with the validity that is certain, and is none where that is over.
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

// Extended notes the result of an extension by ttl, with which validity ends at until.
func (v *Validity) Extended(ttl, until time.Duration, r Result) {
	switch {
	case r == Lost:
		v.until = 0
	case r == Won && v.until != 0: // once lost, for ever
		v.ttl, v.until = ttl, max(v.until, until)
	}
}
