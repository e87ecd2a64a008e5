package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestContextsOfUsersHarmNoOther: one that blocks or panics ends no process, stops no renewal of
// other locks, and ends with its lock.
func TestContextsOfUsersHarmNoOther(t *testing.T) {
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
					awaitDone(t, ctx)
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
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		l := cluster.MustAcquire(t, r.Client, "k", ttl)
		for i := range 2000 {
			user, cancel := context.WithCancel(context.Background())
			defer cancel()
			if i%2 == 0 {
				go cancel()
			}
			ctx, stop := l.KeepAlive(user)
			if i%2 == 1 {
				go cancel()
				go stop()
			}
			awaitDone(t, ctx)
			if i%2 == 0 {
				require.Equal(t, context.Canceled, context.Cause(ctx))
			}
			testkit.Await(t, "the end", func() bool { return r.Stats().KeptAlive == 0 })
		}
		require.NoError(t, l.Release(t.Context()))
	})
}

// TestDerivedContextsSayWhy: a context derived from that of a lock has the error and the cause it
// would have of the user's own context.
func TestDerivedContextsSayWhy(t *testing.T) {
	type name struct{}
	errWhy := errors.New("why")
	for end, begin := range map[string]func(context.Context) (context.Context, func()){
		"cancelled": func(ctx context.Context) (context.Context, func()) { return context.WithCancel(ctx) },
		"cause": func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(errWhy) }
		},
		"deadline": func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithTimeout(ctx, brief/10)
			return ctx, func() { awaitDone(t, ctx); cancel() }
		},
		"deadline, cause": func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithTimeoutCause(ctx, brief/10, errWhy)
			return ctx, func() { awaitDone(t, ctx); cancel() }
		},
		"user's own": func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancel(ctx)
			return userContext{ctx, func(string) {}}, cancel
		},
	} {
		cluster.Run(t, end, func(t *testing.T) {
			r := cluster.New(t, 3)
			l := cluster.MustAcquire(t, r.Client, "k", ttl)
			user, cancel := begin(context.WithValue(t.Context(), name{}, "value"))
			plain, forget := context.WithCancel(user)
			defer forget()
			kept, stop := l.KeepAlive(user)
			defer stop()
			derived, forget := context.WithCancel(context.WithValue(kept, name{}, "another"))
			defer forget()
			require.Equal(t, user.Value(name{}), kept.Value(name{}))
			cancel()
			for _, ctx := range []context.Context{plain, kept, derived} {
				awaitDone(t, ctx)
				require.Equal(t, plain.Err(), ctx.Err())
				require.Equal(t, context.Cause(plain), context.Cause(ctx))
			}
		})
	}
}
