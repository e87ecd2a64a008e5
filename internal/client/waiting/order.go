package waiting

import (
	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
)

// order is that of the grants of a key, by their numbers, as far as it is known here.
type order struct {
	youngest uint64        // exclusive grant seen here; 0: none
	sharedBy uint64        // the youngest shared one
	unknown  uint64        // grants up to this one may have been followed by others, unseen
	passedAt uint64        // the greatest number of all operations when the lock was passed on last
	passing  clock.Instant // until when a lock that was passed on is held; 0: it has ended
}

// stands notes a grant by its number, and reports whether it does stand. It does not if a younger grant is known: the
// key was lost before that grant. It does not either if the lock was passed on while the grant was on its way: an
// operator has deleted the key of the lock, and its new holder may be using it. Shared grants stand beside each other:
// a younger shared grant rules out older exclusive ones alone.
func (o *order) stands(serial uint64, shared bool, now clock.Instant) bool {
	if serial < o.youngest || !shared && serial < o.sharedBy || serial <= o.passedAt && now < o.passing {
		return false
	}
	if shared {
		o.sharedBy = max(o.sharedBy, serial)
		o.unknown = max(o.unknown, serial)
		return true
	}
	o.youngest = serial
	return true
}

// isYoungest reports whether no grant is known that is younger, or may be.
func (o *order) isYoungest(serial uint64) bool { return serial == max(o.youngest, o.unknown) }

// isShared reports whether the last grant was a shared one.
func (o *order) isShared() bool { return o.sharedBy > o.youngest }

// passedOn notes that the lock was passed on, and is held until then.
func (o *order) passedOn(until clock.Instant) { o.passedAt, o.passing = engine.Serials(), until }
