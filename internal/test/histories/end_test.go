package histories

import (
	"slices"
	"strings"
	"time"
)

const (
	// longestEnd is how long the callers of a history may take to return when its context ends.
	longestEnd = 5 * time.Second
	// longestKey bounds the life of keys of a departed client: the queue of an unwanted lock.
	longestKey = 2*time.Minute + time.Second
)

// end waits for the end of all goroutines, and looks at the remains.
func (h *history) end() {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.all.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(longestEnd):
		h.fail("callers do not return")
		<-ended // or the bubble shows where they are
	}
	defer h.Close()
	if h.failed() {
		return
	}
	if h.bounds.tickets && h.troubles == 0 {
		time.Sleep(50 * time.Millisecond) // the last messages are on their way
		h.requireNone("a client that was closed leaves", func(key string) bool {
			return strings.Contains(key, ":redlock:queue") || strings.Contains(key, ":redlock:ticket") // others end soon
		})
	}
	time.Sleep(longestKey)
	for key, node := range h.leftovers {
		h.Servers[node].Del(key)
	}
	h.requireNone("all TTLs are over, and there is", func(key string) bool { return key != "redlock:fence" })
}

// requireNone looks for keys.
func (h *history) requireNone(what string, unwanted func(key string) bool) {
	for i, s := range h.Servers {
		if keys := s.Keys(); slices.ContainsFunc(keys, unwanted) {
			h.fail("%s %q on node %d", what, keys, i)
		}
	}
}

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
