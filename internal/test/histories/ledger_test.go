package histories

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/client/texts"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
	"github.com/redlock-go/redlock/quorum"
)

// ledger has all believed holders of a lock.
type ledger struct {
	history *history

	mu     sync.Mutex
	held   map[string][]*holding
	fences map[string]uint64 // the largest token of a key
	grants int
}

// holding is a lock, from its grant until its holder is done with it.
type holding struct {
	who       string
	keys      []string
	remaining func() time.Duration // validity
	lock      *redlock.Lock        // nil: a foreign one, or one of Do or an Op
	machine   *virtual.Machine     // nil: a foreign one
	process   *process             // nil: a foreign one
	digest    string               // of its value
	reads     bool                 // others may have it too
	since     time.Time
	slept     time.Duration // by then

	// Guarded by the ledger.
	shared bool            // its token was given away
	kept   context.Context // its context, if it is kept alive
	late   time.Time       // since when the context has outlived the validity
}

func (l *ledger) init(h *history) {
	l.history, l.held, l.fences = h, map[string][]*holding{}, map[string]uint64{}
}

// granted notes a new holding. No other on its keys may have validity.
func (l *ledger) granted(b *holding) *holding {
	b.since = time.Now()
	if b.machine != nil {
		b.slept = b.machine.Slept()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	left := b.remaining()
	l.grants++
	l.history.log("%s has %v for %v", b.who, b.keys, left)
	for _, key := range b.keys {
		l.history.watch.granted(key)
		l.history.owners.granted(key, b, left)
		for _, other := range l.held[key] {
			if r := other.remaining(); r > 0 && left > 0 && !(b.reads && other.reads) && !other.shared && !l.excused(key, b, other) {
				l.history.fail("%s has %s for %v, and %s for %v", b.who, key, left, other.who, r)
			}
		}
		l.held[key] = append(l.held[key], b)
	}
	return b
}

// believed returns the keys with a holder that believes in its lock.
func (l *ledger) believed() map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	keys := map[string]bool{}
	for key, held := range l.held {
		for _, b := range held {
			keys[key] = keys[key] || b.remaining() > 0
		}
	}
	return keys
}

// excused reports whether two holdings of a key may overlap: the holder of a key freed by an
// operator has no claim, and a foreign client trusts nodes right after a loss of their keys.
func (l *ledger) excused(key string, a, b *holding) bool {
	if o := &l.history.owners; o.isFreed(key, a) || o.isFreed(key, b) {
		return true
	}
	if a.machine != nil && b.machine != nil {
		return false
	}
	for i := range l.history.Servers {
		if l.history.forgotSince(i, time.Now().Add(-2*maxTTL)) {
			return true
		}
	}
	return false
}

// lock is granted for a lock of the client under test.
func (l *ledger) lock(who string, m *virtual.Machine, p *process, lock redlock.Lock, reads bool) *holding {
	_, digest, _ := strings.Cut(fmt.Sprint(lock), "digest ")
	b := l.granted(&holding{who: who, keys: lock.Keys(), remaining: lock.Remaining, lock: &lock, machine: m, process: p, digest: digest, reads: reads})
	if token := lock.Fence(); token != 0 {
		l.fenced(b, token)
	}
	return b
}

// fenced notes the token of a lock: larger than those of earlier grants on its keys.
func (l *ledger) fenced(b *holding, token uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b.remaining() == 0 {
		return // it may have come after a later one
	}
	for _, key := range b.keys {
		if l.history.owners.isFreed(key, b) {
			continue // it may be passed on after a later one
		}
		if token <= l.fences[key] {
			l.history.fail("%s has %s with the token %d, behind %d", b.who, key, token, l.fences[key])
		}
		l.fences[key] = max(l.fences[key], token)
	}
}

// gone takes a holding out when its holder is done with it.
func (l *ledger) gone(b *holding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range b.keys {
		for i, other := range l.held[key] {
			if other == b {
				l.held[key] = append(l.held[key][:i:i], l.held[key][i+1:]...)
				break
			}
		}
	}
}

// keep notes the context of a lock kept alive, or its end.
func (l *ledger) keep(b *holding, ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b.kept, b.late = ctx, time.Time{}
}

// share notes that a token is given away: another may release the lock.
func (l *ledger) share(b *holding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b.shared = true
}

// lateAfter is how late the context of a lock kept alive may end.
const lateAfter = 5 * time.Millisecond

// audit looks at all holdings: a quorum of nodes has each valid one, and contexts end.
func (l *ledger) audit() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, held := range l.held {
		kept := held[:0]
		for _, b := range held {
			left := b.remaining()
			l.auditContext(b, left)
			if left > 0 {
				l.history.owners.believes(key, time.Now())
			}
			if left > 0 && b.lock != nil && !b.shared && !l.history.owners.isFreed(key, b) {
				l.auditNodes(key, b)
			}
			if left > 0 || b.lock == nil || b.lock.Key() != "" && time.Since(b.since) < 2*time.Minute {
				kept = append(kept, b)
			}
		}
		l.held[key] = kept
	}
}

func (l *ledger) auditContext(b *holding, left time.Duration) {
	if b.kept == nil || left > 0 || b.machine.Slept() != b.slept {
		b.late = time.Time{}
		return
	}
	select {
	case <-b.kept.Done():
		b.kept = nil
	default:
		if now := time.Now(); b.late.IsZero() {
			b.late = now
		} else if now.Sub(b.late) > lateAfter {
			l.history.fail("the context of %s on %v has outlived its validity by %v", b.who, b.keys, now.Sub(b.late))
		}
	}
}

// auditNodes counts the nodes with a lock for as long as its validity. It also counts those that
// may have lost it with their keys since the grant: quarantines take care of these.
func (l *ledger) auditNodes(key string, b *holding) {
	h := l.history
	shown := fmt.Sprint(b.lock) // with the digest of its value; to ask for its token has consequences
	left := b.remaining()
	votes := quorum.Set(0)
	var nodes []string
	for i, s := range h.Servers {
		value, _ := s.Get(key)
		ttl := s.TTL(key)
		if b.reads {
			holders, _ := s.Holders(key)
			for member, left := range holders {
				if strings.Contains(shown, texts.Digest([]byte(member))) {
					value, ttl = member, time.Duration(left)*time.Millisecond
				}
			}
		}
		nodes = append(nodes, texts.Digest([]byte(value))+" "+ttl.String())
		if strings.Contains(shown, texts.Digest([]byte(value))) && ttl >= left || h.forgotSince(i, b.since.Add(-2*maxTTL)) {
			votes |= bit(i)
		}
	}
	if !h.quorumOn(b.machine, key).IsQuorum(votes) && b.remaining() > 0 {
		h.fail("%s has %s for %v (%s), but nodes have it for %q", b.who, key, left, shown, nodes)
	}
}
