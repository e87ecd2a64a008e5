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
}

// Begin starts a life and returns its number, never 0. The lease must not be in
// use.
func (l *Lease) Begin(key string, t token.Token, until time.Duration) (life uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.life++
	l.key, l.token, l.until = key, t, until
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

// Extend moves the end of validity to until.
func (l *Lease) Extend(life uint64, until time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life == life {
		l.until = until
	}
}

// Shorten moves the end of validity to until if that is earlier.
func (l *Lease) Shorten(life uint64, until time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life == life {
		l.until = min(l.until, until)
	}
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
