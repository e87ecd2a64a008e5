package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// releaseOp is the release of a free lock.
func releaseOp(key string, done func(*redlock.Op)) *redlock.Op {
	return &redlock.Op{Kind: redlock.OpRelease, Key: []byte(key), Done: done}
}

// TestSubmitOfAWrongOpUnderWay: wrong arguments of a refused Submit reach neither the driver nor
// the nodes. The first Submit is executed.
func TestSubmitOfAWrongOpUnderWay(t *testing.T) {
	testkit.Apart(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		unclogged := r.Clog(t)
		op := acquireOp("k")
		done := cluster.Begin(t, r.Client, op)
		for _, spoil := range []func(){
			func() { op.Kind = 9 },
			func() { op.TTL = -1 },
			func() { op.Key = nil },
		} {
			spoil()
			require.Error(t, r.Submit(op))
		}
		r.Heal(t)
		unclogged()
		require.NoError(t, testkit.Outcome(t, "Done", done))
		r.AwaitHolders(t, 3, "k")
	})
}

// TestDoneAfterTheEnd: Done of a won acquire gets ErrExpired if other callbacks held it up until no
// validity was left: another may have the lock.
func TestDoneAfterTheEnd(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		unclogged := r.Clog(t)
		// Each of these holds up the others for about 20 ms.
		unblock := make(chan struct{})
		t.Cleanup(func() { close(unblock) })
		for range 8 {
			require.NoError(t, r.Submit(releaseOp("blocks", func(*redlock.Op) { <-unblock })))
		}
		op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte("k"), TTL: 100 * time.Millisecond}
		done := cluster.Begin(t, r.Client, op)
		r.Heal(t)
		unclogged()
		require.ErrorIs(t, testkit.Outcome(t, "Done", done), redlock.ErrExpired)
		require.Zero(t, op.Remaining())
	})
}

// TestCloseInDone: Close does not wait for its own goroutine.
func TestCloseInDone(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		took := make(chan time.Duration, 1)
		require.NoError(t, r.Submit(releaseOp("k", func(*redlock.Op) {
			began := time.Now()
			_ = r.Close()
			took <- time.Since(began)
		})))
		require.Less(t, testkit.Get(t, took), 300*time.Millisecond) // Close gives up on goroutines after 500 ms
	})
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
		ctx := &askedContext{Context: context.Background(), f: func() {
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			_ = l.Release(ended) // it is sent, and not waited for
		}}
		require.ErrorIs(t, l.Extend(ctx, ttl), redlock.ErrNotHeld)
		r.AwaitEmpty(t)
		for _, heard := range r.Recorders {
			for _, c := range heard.Calls("EVALSHA", "k") {
				require.Len(t, c.Args, 5, "a release has no TTL")
			}
		}
	})
}

// TestExtendWhoseContextPanics: the panic is its caller's, and no reason to end the lock:
// extensions granted by a quorum count.
func TestExtendWhoseContextPanics(t *testing.T) {
	for name, set := range map[string]func(*panickingContext){
		"Err":  func(p *panickingContext) { p.err.Store(1) },
		"Done": func(p *panickingContext) { p.done.Store(1) },
	} {
		cluster.Run(t, name, func(t *testing.T) {
			r := cluster.New(t, 3)
			l := cluster.MustAcquire(t, r.Client, "k", ttl)
			p := &panickingContext{Context: context.Background()}
			set(p)
			require.ErrorContains(t, testkit.Try(t, "Extend", func() error { return l.Extend(p, time.Minute) }), "panic")
			require.NoError(t, l.Extend(t.Context(), ttl))
			require.Greater(t, l.Remaining(), 2*time.Minute, "no node has heard of the extension that panicked")
		})
	}
}
