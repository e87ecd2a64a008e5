package histories

import (
	"slices"
	"strings"
	"time"
)

// orphans watches for keys without a possible holder: of a failed attempt, or of a released lock.
type orphans struct {
	history *history
	seen    map[place]*sight
}

// place is the place of a key.
type place struct {
	key  string
	node int
}

// sight is one value at a place, from the first look at it.
type sight struct {
	value string
	turns int       // of the key, by then
	over  time.Time // when its lock was seen to be over
}

// orphaned is how long a node may keep the key of a lock that is over: until its release arrives,
// or its TTL ends, later than validity by the drift.
const orphaned = 250 * time.Millisecond

// look compares all places with the turns of the clients. A value may be that of the turn before
// the look, or of the next. After two more its lock is over. A blocking hook has a turn noted late,
// so these are no clock then.
func (o *orphans) look(now time.Time) {
	h := o.history
	if h.changes != nil || !h.watch.calmSince(now) || slices.ContainsFunc(h.clients, func(c clientPlan) bool { return c.blocks }) {
		return
	}
	for _, key := range h.keys {
		turns := h.ledger.turnsOf(key)
		for i, s := range h.Servers {
			value, ok := s.Get(key)
			at := place{key, i}
			seen := o.seen[at]
			switch {
			case !ok:
				delete(o.seen, at)
			case seen == nil || seen.value != value:
				o.seen[at] = &sight{value: value, turns: turns}
			case turns < seen.turns+2 || strings.HasPrefix(value, "leftover-"):
			case seen.over.IsZero():
				seen.over = now
			case now.Sub(seen.over) > orphaned:
				h.fail("node %d has kept %s for %v after the end of its lock", i, key, now.Sub(seen.over))
			}
		}
	}
}
