package e2e

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// acquireOp is an operation whose result is ignored.
func acquireOp(key string) *redlock.Op {
	return &redlock.Op{Kind: redlock.OpAcquire, Key: []byte(key), TTL: ttl, Done: func(*redlock.Op) {}}
}

// releaseOp is the release of a free lock.
func releaseOp(key string, done func(*redlock.Op)) *redlock.Op {
	return &redlock.Op{Kind: redlock.OpRelease, Key: []byte(key), Done: done}
}

// TestCloseBehindABlockedDone: Done of other operations is called all the same.
func TestCloseBehindABlockedDone(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		unclogged := r.Clog(t)
		began, unblock := make(chan struct{}), make(chan struct{})
		t.Cleanup(func() { close(unblock) })
		require.NoError(t, r.Submit(releaseOp("blocks", func(*redlock.Op) { close(began); <-unblock })))
		done := cluster.Begin(t, r.Client, releaseOp("behind", nil))
		r.Heal(t)
		unclogged()
		testkit.Get(t, began)
		require.NoError(t, testkit.Try(t, "Close", r.Close))
		_ = testkit.Outcome(t, "Done of another operation", done)
	})
}

// TestExtendBehindARelease: a release counts even if called while Extend is between its checks and
// the nodes. No node is asked to extend.
func TestExtendBehindARelease(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		l := cluster.MustAcquire(t, r.Client, "k", ttl)
		r.AwaitHolders(t, 3, "k")
		ctx := userContext{context.Background(), in("Done", sync.OnceFunc(func() {
			_ = l.Release(ended(t)) // it is sent, and not waited for
		}))}
		require.ErrorIs(t, l.Extend(ctx, ttl), redlock.ErrNotHeld)
		r.AwaitEmpty(t)
		for _, heard := range r.Recorders {
			for _, c := range heard.Calls("EVALSHA", "k") {
				require.Len(t, c.Args, 5, "a release has no TTL")
			}
		}
	})
}
