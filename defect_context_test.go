package redlock_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
)

// contextCalls are the calls that take a context. Each gets a lock that is held
// and a key that is taken until the masters are healed.
var contextCalls = map[string]func(c *redlock.Client, held redlock.Lock, ctx context.Context) error{
	"TryAcquire": func(c *redlock.Client, _ redlock.Lock, ctx context.Context) error {
		_, err := c.TryAcquire(ctx, "free", ttl)
		return err
	},
	"Acquire": func(c *redlock.Client, _ redlock.Lock, ctx context.Context) error {
		_, err := c.Acquire(ctx, "taken", ttl)
		return err
	},
	"Extend":  func(_ *redlock.Client, held redlock.Lock, ctx context.Context) error { return held.Extend(ctx, ttl) },
	"Release": func(_ *redlock.Client, held redlock.Lock, ctx context.Context) error { return held.Release(ctx) },
}

// harmless makes a call while others are under way, in the same batch as far as
// that can be had, and others after it. Only the call itself may fail.
func harmless(t *testing.T, r *rig, call func(held redlock.Lock) error) error {
	t.Helper()
	held := mustAcquire(t, r.Client, "held", ttl)
	for _, s := range r.servers {
		s.Set("taken", "another's", 0)
	}
	unclogged := r.clog(t)
	var others []<-chan error
	other := func() {
		key := fmt.Sprint("other ", len(others))
		others = append(others, start(func() error {
			_, err := r.TryAcquire(context.Background(), key, ttl)
			return err
		}))
	}
	other()
	called := start(func() error { return call(held) })
	other()
	time.Sleep(30 * time.Millisecond) // some ticks of the watchdog; a fixed client does nothing in them
	other()
	r.heal(t)
	unclogged()
	for _, done := range others {
		require.NoError(t, soon(t, "another call", done))
	}
	for _, s := range r.servers {
		s.Del("taken")
	}
	err := soon(t, "the call itself", called)
	statsOf(t, r.Client)
	pair(t, r.Client, "behind")
	_ = soon(t, "Release", start(func() error { return held.Release(context.Background()) }))
	for _, s := range r.servers {
		s.Flush()
	}
	return err
}

// TestDefectNilContext counts as context.Background().
func TestDefectNilContext(t *testing.T) {
	for name, call := range contextCalls {
		t.Run(name, func(t *testing.T) {
			apart(t, func(t *testing.T) {
				r := newBoundRig(t, startN(t, 3))
				var none context.Context
				require.NoError(t, harmless(t, r, func(held redlock.Lock) error { return call(r.Client, held, none) }))
			})
		})
	}
}

// moody is a context one of whose methods panics from its n-th call on.
type moody struct {
	context.Context
	err, done atomic.Int64 // calls until they panic; 0 is never
}

func (m *moody) Err() error {
	if m.err.Add(-1) == 0 {
		m.err.Add(1) // and again
		panic("of a context's Err")
	}
	return m.Context.Err()
}

func (m *moody) Done() <-chan struct{} {
	if m.done.Add(-1) == 0 {
		m.done.Add(1)
		panic("of a context's Done")
	}
	return m.Context.Done()
}

// TestDefectContextPanics: a context that panics harms its own call at most,
// whichever call of its methods it is.
func TestDefectContextPanics(t *testing.T) {
	for name, call := range contextCalls {
		for _, method := range []string{"Err", "Done"} {
			t.Run(name+" "+method, func(t *testing.T) {
				apart(t, func(t *testing.T) {
					r := newBoundRig(t, startN(t, 3))
					for nth := range 4 {
						ctx, cancel := context.WithCancel(context.Background())
						m := &moody{Context: ctx}
						if method == "Err" {
							m.err.Store(int64(nth + 1))
						} else {
							m.done.Store(int64(nth + 1))
						}
						_ = harmless(t, r, func(held redlock.Lock) error { return call(r.Client, held, m) })
						cancel()
					}
				})
			})
		}
	}
}

// locking is a context whose methods take a lock.
type locking struct {
	context.Context
	mu      sync.Mutex
	waiting atomic.Int64 // in a method
}

func (l *locking) lock() (unlock func()) {
	l.waiting.Add(1)
	l.mu.Lock()
	return func() {
		l.mu.Unlock()
		l.waiting.Add(-1)
	}
}

func (l *locking) Err() error {
	defer l.lock()()
	return l.Context.Err()
}

func (l *locking) Done() <-chan struct{} {
	defer l.lock()()
	return l.Context.Done()
}

// TestDefectContextThatLocks: a caller may hold, while it asks for Stats or makes
// a call, the lock that a context of calls under way takes too.
func TestDefectContextThatLocks(t *testing.T) {
	uses := map[string]func(c *redlock.Client) error{
		"Stats":  func(c *redlock.Client) error { c.Stats(); return nil },
		"Submit": func(c *redlock.Client) error { return c.Submit(noted("submitted")) },
	}
	for name, c := range map[string]struct {
		queued bool
		use    string
	}{
		"flying, Stats":  {false, "Stats"},
		"queued, Stats":  {true, "Stats"},
		"queued, Submit": {true, "Submit"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newBoundRig(t, startN(t, 3))
			parent, cancel := context.WithCancel(t.Context())
			defer cancel()
			ctx := &locking{Context: parent}
			unclogged := func() {}
			if c.queued {
				unclogged = r.clog(t)
			} else {
				for _, s := range r.servers {
					s.Mute()
				}
			}
			before := statsOf(t, r.Client)
			called := start(func() error {
				_, err := r.TryAcquire(ctx, "k", ttl)
				return err
			})
			awaitSoon(t, bound, "under way", func() bool {
				s := statsOf(t, r.Client)
				return s.Waiting+s.InFlight > before.Waiting+before.InFlight
			})
			used := start(func() error {
				ctx.mu.Lock()
				defer ctx.mu.Unlock()
				for range 100 { // until the client asks the context, if it does
					if ctx.waiting.Load() > 0 {
						break
					}
					time.Sleep(time.Millisecond)
				}
				return uses[c.use](r.Client)
			})
			require.NoError(t, soon(t, c.use+" under the context's lock", used))
			r.heal(t)
			unclogged()
			require.NoError(t, soon(t, "the call", called))
		})
	}
}

// noted is an operation whose result is not waited for.
func noted(key string) *redlock.Op {
	return &redlock.Op{Kind: redlock.OpAcquire, Key: []byte(key), TTL: ttl, Done: func(*redlock.Op) {}}
}
