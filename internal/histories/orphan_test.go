package histories

import (
	"strings"
	"time"
)

// orphans watches for keys that nodes keep although no holder can have them: of an attempt that failed, or of
// a lock that was released.
type orphans struct {
	history *history
	seen    map[place]*sight
}

// place is where a key is.
type place struct {
	key  string
	node int
}

// sight is one value at a place, from the first look at it.
type sight struct {
	value  string
	grants int       // of the key, by then
	over   time.Time // when its lock was seen to be over
}

// orphaned is for how long a node may keep the key of a lock that is over: until its release arrives, or its
// TTL ends, which is the drift later than validity.
const orphaned = 250 * time.Millisecond

// look compares all places with the grants. A value may be that of the grant before it, or that of the next.
// Two later ones, and its lock is over.
func (o *orphans) look(now time.Time) {
	h := o.history
	if h.changes != nil || !h.watch.calmSince(now) {
		return
	}
	for _, key := range h.keys {
		grants := h.ledger.countOf(key)
		for i, s := range h.Servers {
			value, ok := s.Get(key)
			at := place{key, i}
			seen := o.seen[at]
			switch {
			case !ok:
				delete(o.seen, at)
			case seen == nil || seen.value != value:
				o.seen[at] = &sight{value: value, grants: grants}
			case grants < seen.grants+2 || strings.HasPrefix(value, "leftover-"):
			case seen.over.IsZero():
				seen.over = now
			case now.Sub(seen.over) > orphaned:
				h.fail("node %d has kept %s for %v after the end of its lock", i, key, now.Sub(seen.over))
			}
		}
	}
}
