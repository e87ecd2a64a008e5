package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// TestKeptByHand: the holder of a lock that is kept alive may extend it, and keeps it
// alive once at a time; what one KeepAlive has begun, no stop of another ends.
func TestKeptByHand(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		l := cluster.MustAcquire(t, r.Client, "k", brief)
		first, stopFirst := l.KeepAlive(t.Context())
		second, stopSecond := l.KeepAlive(t.Context())
		require.Error(t, second.Err())
		require.ErrorContains(t, context.Cause(second), "kept alive already")
		require.ErrorContains(t, cluster.Keep(l, nil), "kept alive already")
		stopSecond()
		require.NoError(t, first.Err())
		require.NoError(t, l.Extend(t.Context(), 2*brief))
		require.Greater(t, l.Remaining(), brief)
		require.NoError(t, l.Extend(t.Context(), brief/3))
		awaitPassed(t, brief)
		require.NoError(t, context.Cause(first))
		require.Less(t, l.Remaining(), brief/3, "by the TTL that it was given last")
		stopFirst()
		for range 10 { // entries are used again
			third, stopThird := l.KeepAlive(t.Context())
			stopFirst()
			stopSecond()
			require.NoError(t, third.Err())
			require.Equal(t, 1, cluster.Stats(t, r.Client).KeptAlive)
			stopThird()
		}
		require.NoError(t, l.Release(t.Context()))
	})
}

// TestShorterExtension: the context ends with the shorter validity, also while no node has
// confirmed it, and not when the next renewal would have been due.
func TestShorterExtension(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		for _, silent := range []bool{false, true} {
			r := cluster.New(t, 3)
			l := cluster.MustAcquire(t, r.Client, "k", ttl)
			ctx, stop := l.KeepAlive(t.Context())
			defer stop()
			cluster.Settle(t, r.Client)
			for _, s := range r.Servers {
				if silent {
					s.Mute()
				} else {
					s.ErrorReply("EVALSHA", "BUSY Redis is busy", 1e6)
				}
			}
			testkit.Start(func() error { return l.Extend(context.Background(), brief) })
			testkit.AwaitFor(t, testkit.Promptly, "the end", func() bool { return testkit.IsClosed(ctx.Done()) })
			require.Zero(t, l.Remaining())
		}
	})
}

// TestOverlappingExtensions: while the holder extends by a shorter TTL the lock is renewed
// by the longer one. Which of them the nodes apply last is not known; the next renewal comes
// before the end of the shorter.
func TestOverlappingExtensions(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		for i := range 5 {
			l := cluster.MustAcquire(t, r.Client, fmt.Sprint("k", i), 4*brief)
			ctx, stop := l.KeepAlive(t.Context())
			testkit.Await(t, "just before a renewal", func() bool { return l.Remaining() < 4*brief*2/3 })
			for _, s := range r.Servers {
				s.Delay(brief / 6)
			}
			require.NoError(t, l.Extend(t.Context(), brief))
			for _, s := range r.Servers {
				s.Delay(0)
			}
			awaitPassed(t, brief)
			require.NoError(t, context.Cause(ctx))
			stop()
			l.ReleaseAsync()
		}
	})
}
