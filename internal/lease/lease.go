// Package lease keeps what is known of a lock that was acquired, behind handles
// that outlive it.
//
// A [Lease] is reused once its lock is gone, so that acquiring allocates
// nothing. A handle therefore remembers which life of the lease it was given:
// one that is used after its lock was released finds another life, and must be
// told that it holds nothing. This is what makes a handle a value that can be
// copied, kept and used twice without harm.
package lease

import (
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/token"
)

// Lease is one lock held, or a used one that waits for the next.
// It is safe for concurrent use.
type Lease struct {
	mu    sync.Mutex
	life  uint64
	key   string
	token token.Token
	until time.Duration

	absent uint64 // nodes without the key, a bit each

	extending int           // extensions under way
	group     int           // those and the ones they overlapped with
	soonest   time.Duration // of the ends of validity that the group asks for
	before    time.Duration // the end of validity when the group began

	told bool // its loss, or there will be none to tell
}

// Begin starts a life and returns its number, never 0. The lease must not be in
// use.
func (l *Lease) Begin(key string, t token.Token, until time.Duration, absent uint64) (life uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.life++
	l.key, l.token, l.until, l.absent, l.extending, l.told = key, t, until, absent, 0, false
	return l.life
}

// Get returns what is held, and false if that life is over.
func (l *Lease) Get(life uint64) (key string, t token.Token, until time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life != life || l.key == "" {
		return "", token.Token{}, 0, false
	}
	return l.key, l.token, l.until, true
}

// Absent returns the nodes that do not have the key, a bit each.
func (l *Lease) Absent(life uint64) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life != life {
		return 0
	}
	return l.absent
}

// Extending notes that an extension is on its way which would end validity at
// until. An earlier end counts from now on: the nodes may apply it at any time.
func (l *Lease) Extending(life uint64, until time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life != life {
		return
	}
	if l.extending == 0 {
		l.soonest, l.before, l.group = until, l.until, 0
	}
	l.group++
	l.extending++
	l.soonest = min(l.soonest, until)
	l.until = min(l.until, until)
}

// Extended notes what became of it. Where extensions overlap, nobody knows
// which of them the nodes applied last; validity then ends with the soonest.
func (l *Lease) Extended(life uint64, won bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life != life {
		return
	}
	l.extending--
	if won {
		l.until = l.soonest
	}
}

// Unextended takes an extension back that was never sent. Alone it leaves no
// trace; where it overlapped with others, its end of validity stays one of theirs.
func (l *Lease) Unextended(life uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life != life {
		return
	}
	l.extending--
	if l.group == 1 {
		l.until = l.before
	}
}

// Lose ends validity, and leaves the rest as it is.
func (l *Lease) Lose(life uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life == life {
		l.until, l.soonest, l.before = 0, 0, 0
	}
}

// Told notes whether the loss of the lock is known, and returns whether it was,
// so that it is told once. To give the lock back makes it known: what is then
// found missing was not lost. Of a life that is over there is nothing to tell.
func (l *Lease) Told(life uint64, told bool) (was bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life != life || l.key == "" {
		return true
	}
	was, l.told = l.told, told
	return was
}

// End ends a life and reports whether it was this call that did, so that one
// caller alone puts the lease up for the next.
func (l *Lease) End(life uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life != life || l.key == "" {
		return false
	}
	l.key = ""
	return true
}
