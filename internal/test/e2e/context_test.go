package e2e

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

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
					for _, method := range []string{"Err", "Done"} {
						p := userContext{t.Context(), in(method, func() { panic("of a context's " + method) })}
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
		r, left := sleeping(t, 3, 2*ttl)
		for name, acquire := range map[string]func(context.Context) (redlock.Lock, error){
			"TryAcquire":    func(ctx context.Context) (redlock.Lock, error) { return r.TryAcquire(ctx, "k", ttl) },
			"Acquire":       func(ctx context.Context) (redlock.Lock, error) { return r.Acquire(ctx, "k", ttl) },
			"TryAcquireAll": func(ctx context.Context) (redlock.Lock, error) { return r.TryAcquireAll(ctx, ttl, "k", "l") },
			"TryAcquireAny": func(ctx context.Context) (redlock.Lock, error) { return r.TryAcquireAny(ctx, ttl, "k", "l") },
		} {
			for nth := range int64(4) {
				for n := range int64(12) {
					r.AwaitUp(t)
					asked := int64(0)
					p := userContext{t.Context(), in("Err", func() {
						asked++
						if asked > nth {
							panic("of a context's Err")
						}
					})}
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

// TestContextsOfUsersHarmNoOther: one that blocks or panics ends no process, stops no renewal of
// other locks, and ends with its lock.
func TestContextsOfUsersHarmNoOther(t *testing.T) {
	t.Parallel()
	testkit.Apart(t, func(t *testing.T) {
		forever := make(chan struct{})
		defer close(forever)
		r := cluster.New(t, 3)
		other := cluster.MustAcquire(t, r.Client, "other", 4*time.Second)
		otherContext, stop := other.KeepAlive(t.Context())
		defer stop()
		for name, harm := range map[string]func(){
			"blocks": func() { <-forever },
			"panics": func() { panic("user code") },
		} {
			for _, method := range []string{"Done", "Err", "Value"} {
				for _, end := range []string{"by its user", "since it is lost", "stopped"} {
					key := fmt.Sprint(name, method, end)
					parent, cancel := context.WithCancel(context.Background())
					defer cancel()
					var harms atomic.Bool
					user := userContext{parent, in(method, func() {
						if harms.Load() {
							harm()
						}
					})}
					l := cluster.MustAcquire(t, r.Client, key, brief)
					ctx, stop := l.KeepAlive(user)
					harms.Store(true)
					switch end {
					case "by its user":
						cancel()
					case "since it is lost":
						r.Servers.Del(key)
					case "stopped":
						testkit.Within(t, testkit.Promptly, "stop", stop)
					}
					if end == "by its user" && name == "blocks" && method != "Done" {
						continue // it is asked for its error, and does not answer
					}
					testkit.Get(t, ctx.Done())
				}
			}
		}
		// A context that panics when the lock is to be kept alive begins nothing.
		l := cluster.MustAcquire(t, r.Client, "k", brief)
		for _, method := range []string{"Done", "Err", "Value"} {
			user := userContext{context.Background(), in(method, func() { panic("user code") })}
			require.Panics(t, func() { l.KeepAlive(user) })
		}
		testkit.Await(t, "the end", func() bool { return l.Remaining() == 0 })
		until := func() time.Time { return time.Now().Add(other.Remaining()) }
		before := until()
		testkit.Await(t, "the other is kept alive", func() bool { return until().After(before.Add(time.Second)) })
		require.NoError(t, otherContext.Err())
	})
}

// TestContextEndsWhileItIsAttached: wherever the end of the user's context falls, the lock's
// context ends with it and no lock stays kept alive. The race detector watches.
func TestContextEndsWhileItIsAttached(t *testing.T) {
	r := cluster.New(t, 3)
	var over atomic.Bool
	var others sync.WaitGroup
	defer others.Wait()
	defer over.Store(true)
	for range 2 { // the keeper is busy: now and then it hears of the end before it has the lock
		others.Go(func() {
			for !over.Load() {
				r.Stats()
				runtime.Gosched()
			}
		})
	}
	for i := range 2000 {
		l := cluster.MustAcquire(t, r.Client, fmt.Sprint(i), ttl)
		user, cancel := context.WithCancel(context.Background())
		ctx, _ := l.KeepAlive(userContext{user, in("Done", cancel)})
		testkit.Get(t, ctx.Done())
		require.Equal(t, context.Canceled, context.Cause(ctx))
		testkit.AwaitFor(t, testkit.Promptly, "the end", func() bool { return r.Stats().KeptAlive == 0 })

		user, cancel = context.WithCancel(context.Background())
		ctx, stop := l.KeepAlive(user)
		go cancel()
		go stop()
		testkit.Get(t, ctx.Done())
		testkit.AwaitFor(t, testkit.Promptly, "the end", func() bool { return r.Stats().KeptAlive == 0 })
		require.NoError(t, l.Release(t.Context()))
	}
}
