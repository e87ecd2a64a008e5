package histories

import (
	"context"
	"sync"
	"time"

	"github.com/redlock-go/redlock/quorum"
)

type watch struct {
	history *history

	mu       sync.Mutex
	calm     time.Time // all nodes have a vote from then on; zero: not yet
	wanted   map[string]int
	free     map[string]time.Time // since when a lock is free and wanted
	sets     map[string]int       // callers of AcquireAll
	ofSets   map[string]time.Time // when a set wanted it last
	believed map[string]time.Time // when it was free last, and a process believed in a holder of its own
	open     map[string]time.Time // since when it is free, wanted or not
	choosers map[*want]time.Time  // of any of all keys, since when they wait
}

// keptTurn is how long sets keep a free key.
const keptTurn = 1200 * time.Millisecond

// longestGap is how long a process leaves a lock free for others that poll.
const longestGap = 700 * time.Millisecond

const looks = 10 * time.Millisecond

func (w *watch) init(h *history) {
	w.history = h
	w.sets, w.ofSets, w.believed = map[string]int{}, map[string]time.Time{}, map[string]time.Time{}
	w.wanted, w.free, w.open, w.choosers = map[string]int{}, map[string]time.Time{}, map[string]time.Time{}, map[*want]time.Time{}
}

func (w *watch) calmFrom(t time.Time) {
	w.mu.Lock()
	w.calm = t
	w.mu.Unlock()
}

// calmSince reports whether all nodes have had a vote since then.
func (w *watch) calmSince(t time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.calm.IsZero() && t.After(w.calm)
}

type want struct {
	watch *watch
	keys  []string // any of them is wanted
	on    bool     // guarded by watch.mu
	over  bool
}

// wantOf is its key in its context.
type wantOf struct{}

// wants notes a caller of Acquire, or of AcquireAny, until it is called back.
func (w *watch) wants(ctx context.Context, keys ...string) (_ context.Context, done func()) {
	one := &want{watch: w, keys: keys}
	one.begin()
	return context.WithValue(ctx, wantOf{}, one), func() {
		one.end()
		w.mu.Lock()
		one.over = true
		w.mu.Unlock()
	}
}

func (one *want) begin() { one.set(true) }

// end reports whether the caller was waiting.
func (one *want) end() bool { return one.set(false) }

func (one *want) set(on bool) (changed bool) {
	one.watch.mu.Lock()
	defer one.watch.mu.Unlock()
	if one.on == on || one.over {
		return false
	}
	switch one.on = on; {
	case len(one.keys) > 1 && on:
		one.watch.choosers[one] = time.Now()
	case len(one.keys) > 1:
		delete(one.watch.choosers, one)
	case on:
		one.watch.add(one.keys[0], 1)
	default:
		one.watch.add(one.keys[0], -1)
	}
	return true
}

func (w *watch) add(key string, n int) {
	w.wanted[key] += n
	if w.wanted[key] == 0 {
		delete(w.free, key)
	}
}

// collects notes a caller who wants all of some keys, until it is called back.
func (w *watch) collects(keys []string) (done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys {
		w.sets[key]++
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, key := range keys {
			w.sets[key]--
			w.ofSets[key] = time.Now()
		}
	}
}

func (w *watch) run() {
	for i := 0; w.history.pause(looks); i++ {
		w.history.ledger.audit()
		w.history.owners.look(time.Now(), w.calmSince(time.Now()))
		w.look(time.Now())
	}
}

func (w *watch) look(now time.Time) {
	believed := w.history.ledger.believed()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calm.IsZero() || now.Before(w.calm) {
		return
	}
	h := w.history
	for key, n := range w.wanted {
		if n == 0 || !h.isFree(key) {
			delete(w.free, key)
			continue
		}
		if believed[key] {
			w.believed[key] = now
		}
		since, ok := w.free[key]
		if !ok {
			w.free[key] = now
			continue
		}
		long := now.Sub(since)
		if w.sets[key] > 0 {
			w.ofSets[key] = now
		}
		bound := h.free
		if h.changes == nil && w.ofSets[key].Before(since.Add(-keptTurn)) { // a key that moves is a set of two
			bound = h.alone
			if !w.believed[key].Before(since) {
				bound += longestGap
			}
		}
		if long > bound {
			h.fail("%s is free on a quorum for %v, and %d callers wait", key, long, n)
		}
	}
	waits := now // since when one does for any of all keys
	for _, since := range w.choosers {
		if since.Before(waits) {
			waits = since
		}
	}
	for _, key := range h.keys {
		since, ok := w.open[key]
		switch {
		case !h.isFree(key):
			delete(w.open, key)
		case !ok:
			w.open[key] = now
		case now.Sub(since) > h.free && now.Sub(waits) > h.free:
			h.fail("%s is free on a quorum for %v, and a caller waits for any for %v", key, now.Sub(since), now.Sub(waits))
		}
	}
}

// granted notes a lock's new holder, perhaps for less than the time between two looks.
func (w *watch) granted(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.free, key)
	delete(w.open, key)
}

// isFree reports whether a quorum of nodes lacks a key, of all clients there are.
func (h *history) isFree(key string) bool {
	lacking := quorum.Set(0)
	for i, s := range h.Servers {
		if _, ok := s.Get(key); !ok {
			lacking |= bit(i)
		}
	}
	layouts := h.layouts()
	if h.changes != nil {
		layouts = h.changes.present()
	}
	return quorumOf(key, layouts).IsQuorum(lacking)
}
