package cluster

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/redlock-go/redlock"
)

// Promises are the times for which a key was promised to a caller, by Remaining.
// No two may overlap. They are compared and not the holders' doings, so that a
// slow machine is not taken for a broken promise.
type Promises struct {
	Key  string
	mu   sync.Mutex
	made []promise
	lost int // locks, before they were over

	Plain bool // they are not extended
}

type promise struct {
	who         string
	from, until time.Time
}

// Count is how many there are.
func (p *Promises) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.made)
}

func (p *Promises) lose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost++
}

// Broken returns two promises that overlap, if there are any.
func (p *Promises) Broken() []promise {
	p.mu.Lock()
	defer p.mu.Unlock()
	made := slices.SortedFunc(slices.Values(p.made), func(a, b promise) int { return a.from.Compare(b.from) })
	var longest promise
	for _, m := range made {
		if !m.until.After(m.from) {
			continue // nothing was promised: its holder ran too late for it
		}
		if m.from.Before(longest.until) {
			return []promise{longest, m}
		}
		if m.until.After(longest.until) {
			longest = m
		}
	}
	return nil
}

// Hold takes the key once if it can, holds it for a while, and gives it back or
// lets it end.
func (p *Promises) Hold(ctx context.Context, c *redlock.Client, who string, ttl time.Duration, rng *rand.Rand) {
	attempt, cancel := context.WithTimeout(ctx, ttl)
	defer cancel()
	l, err := c.Acquire(attempt, p.Key, ttl)
	if err != nil {
		return
	}
	now := time.Now()
	m := promise{who, now, now.Add(l.Remaining())}
	extends := rng.IntN(3)
	if p.Plain {
		extends = 0
	}
	for range extends {
		pause(ctx, time.Duration(rng.Int64N(int64(ttl))))
		switch err := l.Extend(context.Background(), ttl); {
		case err == nil:
			now = time.Now()
			m.until = now.Add(l.Remaining())
		case err == redlock.ErrNotHeld && time.Now().Before(m.until):
			p.lose() // and yet no other client may have it before
		}
	}
	if pause(ctx, time.Duration(rng.Int64N(int64(ttl)))); rng.IntN(4) > 0 {
		if now = time.Now(); now.Before(m.until) {
			m.until = now
		}
		_ = l.Release(context.Background())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made = append(p.made, m)
}

// pause is a holder's work.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Lost is how many locks were gone before their time.
func (p *Promises) Lost() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}
