package e2e

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// contextCalls are the calls with a context. Each gets a held lock, and a key taken at first.
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

// callAmongOthers makes a call with others before it and after it, in the
// same batch as far as the client allows, and returns its error. The others must
// succeed, and the client must go on.
func callAmongOthers(t *testing.T, r *cluster.Cluster, call func(held redlock.Lock) error) error {
	t.Helper()
	held := cluster.MustAcquire(t, r.Client, "held", ttl)
	r.Servers.Take("taken")
	unclogged := r.Clog(t)
	var others []<-chan error
	other := func() {
		key := fmt.Sprint("other ", len(others))
		others = append(others, testkit.Start(func() error {
			_, err := r.TryAcquire(context.Background(), key, ttl)
			return err
		}))
	}
	other()
	called := testkit.Start(func() error { return call(held) })
	other()
	time.Sleep(15 * time.Millisecond) // some ticks of the watchdog; nothing is to be seen of them
	other()
	r.Heal(t)
	unclogged()
	for _, done := range others {
		require.NoError(t, testkit.Outcome(t, "another call", done))
	}
	r.Servers.Del("taken")
	err := testkit.Outcome(t, "the call itself", called)
	cluster.Stats(t, r.Client)
	live(t, r.Client, "behind")
	_ = testkit.Try(t, "Release", func() error { return held.Release(context.Background()) })
	r.Servers.Flush()
	return err
}

// TestNilContext counts as context.Background().
func TestNilContext(t *testing.T) {
	testkit.Apart(t, func(t *testing.T) {
		for name, call := range contextCalls {
			t.Run(name, func(t *testing.T) {
				r := cluster.New(t, 3)
				var none context.Context
				require.NoError(t, callAmongOthers(t, r, func(held redlock.Lock) error { return call(r.Client, held, none) }))
			})
		}
	})
}

// panickingContext has a method that panics from its n-th call on.
type panickingContext struct {
	context.Context
	err, done atomic.Int64 // calls until they panic; 0 is never
}

func (p *panickingContext) Err() error {
	if p.err.Add(-1) == 0 {
		p.err.Add(1) // and again
		panic("of a context's Err")
	}
	return p.Context.Err()
}

func (p *panickingContext) Done() <-chan struct{} {
	if p.done.Add(-1) == 0 {
		p.done.Add(1)
		panic("of a context's Done")
	}
	return p.Context.Done()
}

// TestContextMayPanic: a context that panics harms its own call at most, in any of its methods.
func TestContextMayPanic(t *testing.T) {
	testkit.Apart(t, func(t *testing.T) {
		for name, call := range contextCalls {
			for _, method := range []string{"Err", "Done"} {
				t.Run(name+" "+method, func(t *testing.T) {
					r := cluster.New(t, 3)
					for nth := range int64(3) {
						ctx, cancel := context.WithCancel(context.Background())
						p := &panickingContext{Context: ctx}
						if method == "Err" {
							p.err.Store(nth + 1)
						} else {
							p.done.Store(nth + 1)
						}
						_ = callAmongOthers(t, r, func(held redlock.Lock) error { return call(r.Client, held, p) })
						cancel()
					}
				})
			}
		}
	})
}

// TestReleaseOfPanickingContext, and Extend: a context that panics, in either method, leaves the lock
// as it was. The panic is its caller's, and no node hears of the call.
func TestReleaseOfPanickingContext(t *testing.T) {
	for name, hooks := range map[string][]func(*redlock.Config){"plain": nil, "hooks": {cluster.Listening(new(cluster.HookRecorder))}} {
		cluster.Run(t, name, func(t *testing.T) {
			r := cluster.New(t, 3, hooks...)
			l := cluster.MustAcquire(t, r.Client, "k", ttl)
			for kept, keptContext := range []context.Context{t.Context(), nil} {
				if kept > 0 {
					keptContext, _ = l.KeepAlive(t.Context())
				}
				for _, call := range []func(context.Context) error{l.Release, func(ctx context.Context) error { return l.Extend(ctx, time.Minute) }} {
					for _, method := range []func(*panickingContext) *atomic.Int64{
						func(p *panickingContext) *atomic.Int64 { return &p.err },
						func(p *panickingContext) *atomic.Int64 { return &p.done },
					} {
						p := &panickingContext{Context: t.Context()}
						method(p).Store(1)
						require.ErrorContains(t, testkit.Try(t, "a call", func() error { return call(p) }), "of a context's")
						require.NotZero(t, l.Remaining())
						require.NoError(t, keptContext.Err())
					}
				}
			}
			require.NoError(t, l.Extend(t.Context(), ttl))
			require.Greater(t, l.Remaining(), 2*time.Minute)
		})
	}
}

// TestLateGrantToAPanickingContext: a call that panics leaves no key, at whichever reading of the clock
// its machine was found to have been suspended: also not that of a lock it was granted too late.
func TestLateGrantToAPanickingContext(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := &cluster.Cluster{Servers: cluster.Start(t, 3), Machine: cluster.NewMachine(t)}
		var left atomic.Int64 // readings until the machine has slept
		r.Machine.Read = func() {
			if left.Add(-1) == 0 {
				r.Machine.Skip(2 * ttl)
			}
		}
		r.Client = cluster.ConnectOn(t, r.Machine, fakeredis.Addrs(r.Servers))
		for name, acquire := range map[string]func(context.Context) (redlock.Lock, error){
			"TryAcquire":    func(ctx context.Context) (redlock.Lock, error) { return r.TryAcquire(ctx, "k", ttl) },
			"Acquire":       func(ctx context.Context) (redlock.Lock, error) { return r.Acquire(ctx, "k", ttl) },
			"TryAcquireAll": func(ctx context.Context) (redlock.Lock, error) { return r.TryAcquireAll(ctx, ttl, "k", "l") },
			"TryAcquireAny": func(ctx context.Context) (redlock.Lock, error) { return r.TryAcquireAny(ctx, ttl, "k", "l") },
		} {
			for nth := range int64(4) {
				for n := range int64(12) {
					r.AwaitUp(t)
					p := &panickingContext{Context: t.Context()}
					p.err.Store(nth + 1)
					left.Store(n + 1)
					_ = testkit.Try(t, name, func() error {
						l, err := acquire(p)
						l.ReleaseAsync()
						return err
					})
					left.Store(0)
					r.AwaitEmpty(t)
				}
			}
		}
	})
}

// lockingContext has methods that take a lock.
type lockingContext struct {
	context.Context
	mu      sync.Mutex
	waiting atomic.Int64 // in a method
}

func (l *lockingContext) lock() (unlock func()) {
	l.waiting.Add(1)
	l.mu.Lock()
	return func() {
		l.mu.Unlock()
		l.waiting.Add(-1)
	}
}

func (l *lockingContext) Err() error {
	defer l.lock()()
	return l.Context.Err()
}

func (l *lockingContext) Done() <-chan struct{} {
	defer l.lock()()
	return l.Context.Done()
}

// TestContextMayLock: a caller of Stats or Submit may hold a lock taken by the context of another
// call.
func TestContextMayLock(t *testing.T) {
	stats := func(c *redlock.Client) error { c.Stats(); return nil }
	submit := func(c *redlock.Client) error { return c.Submit(acquireOp("submitted")) }
	for name, c := range map[string]struct {
		queued bool
		use    func(*redlock.Client) error
	}{
		"in flight, Stats": {false, stats},
		"queued, Stats":    {true, stats},
		"queued, Submit":   {true, submit},
	} {
		cluster.Run(t, name, func(t *testing.T) {
			r := cluster.New(t, 3)
			parent, cancel := context.WithCancel(t.Context())
			defer cancel()
			ctx := &lockingContext{Context: parent}
			unclogged := func() {}
			if c.queued {
				unclogged = r.Clog(t)
			} else {
				r.Servers.Mute()
			}
			before := cluster.Stats(t, r.Client)
			called := testkit.Start(func() error {
				_, err := r.TryAcquire(ctx, "k", ttl)
				return err
			})
			testkit.Await(t, "under way", func() bool {
				s := cluster.Stats(t, r.Client)
				return s.Waiting+s.InFlight > before.Waiting+before.InFlight
			})
			require.NoError(t, testkit.Try(t, "a call under the context's lock", func() error {
				ctx.mu.Lock()
				defer ctx.mu.Unlock()
				for range 50 { // until the client asks the context, if it does
					if ctx.waiting.Load() > 0 {
						break
					}
					time.Sleep(time.Millisecond)
				}
				return c.use(r.Client)
			}))
			r.Heal(t)
			unclogged()
			require.NoError(t, testkit.Outcome(t, "the call", called))
		})
	}
}
