package renewal

import (
	"sync"
	"time"
)

// Validity is the end of a lock's validity, and the extensions that may change it.
type Validity struct {
	ttl       time.Duration // that the nodes were asked for last
	confirmed time.Duration // the end, by what the nodes have confirmed
	until     time.Duration // the same, with what they may have been asked since
	extends   *Extension    // under way
}

// Pass has the lock pass on to a holder that has asked for ttl, and returns when validity
// ends. It does not if the holder would have less than 7/8 of that, or more than it, or if
// an extension is under way. The next renewals ask for ttl.
func (v *Validity) Pass(now, ttl time.Duration) (until time.Duration, ok bool) {
	left := v.until - now
	if v.extends != nil || left < ttl-ttl/8 || left > ttl {
		return 0, false
	}
	*v = Begin(ttl, v.until)
	return v.until, true
}

// Extension is one that is under way.
type Extension struct {
	next   *Extension
	ttl    time.Duration
	before time.Duration // when the validity ends that it extends
	until  time.Duration // when validity ends if it is the last that the nodes apply
	least  time.Duration // of this and those that overlap it
}

var extensions = sync.Pool{New: func() any { return new(Extension) }}

// Begin is the validity of a lock that was acquired with a TTL.
func Begin(ttl, until time.Duration) Validity {
	return Validity{ttl: ttl, confirmed: until, until: until}
}

// TTL is the one that the nodes have confirmed last.
func (v *Validity) TTL() time.Duration { return v.ttl }

// Until is when validity ends.
func (v *Validity) Until() time.Duration { return v.until }

// Repair is for how long a node that lacks the key may be given it again: its copy ends
// with the validity that is certain, and is none where that is over.
func (v *Validity) Repair(now time.Duration) time.Duration {
	return max(0, v.until-now).Truncate(time.Millisecond)
}

// Extending notes that an extension is about to be sent which would end validity
// at until. An earlier end counts from now on: the nodes may apply it at any time.
func (v *Validity) Extending(ttl, until time.Duration) *Extension {
	x := extensions.Get().(*Extension)
	*x = Extension{v.extends, ttl, v.until, until, until}
	for other := v.extends; other != nil; other = other.next {
		x.least = min(x.least, other.until)
		other.least = min(other.least, until)
	}
	v.extends = x
	v.until = min(v.until, until)
	return x
}

// Before is when an extension must have won: the end of the validity that it extends.
func (x *Extension) Before() time.Duration { return x.before }

// Result is the result of an extension.
type Result uint8

const (
	Unsent  Result = iota // no node has heard of it
	Unknown               // nodes may apply it, or may not
	Won                   // a quorum has applied it
	Lost                  // too few nodes have the key
)

// Extended notes the result of an extension. Where extensions overlap, the order in
// which the nodes applied them is not known. So an extension that has won ends validity
// at the earliest end of those that overlapped it. x is given to Drop next.
func (v *Validity) Extended(x *Extension, r Result) {
	for at := &v.extends; *at != nil; at = &(*at).next {
		if *at == x {
			*at = x.next
			break
		}
	}
	switch {
	case r == Lost || v.confirmed == 0: // once lost, for ever
		v.confirmed = 0
	case r == Won:
		v.confirmed, v.ttl = x.least, x.ttl
	case r == Unknown:
		v.confirmed = min(v.confirmed, x.until)
	}
	v.until = v.confirmed
	for other := v.extends; other != nil; other = other.next {
		v.until = min(v.until, other.until)
	}
}

// Drop takes back an extension that has its result, or belongs to a lock that is gone. It must not be
// used after this.
func Drop(x *Extension) { extensions.Put(x) }
