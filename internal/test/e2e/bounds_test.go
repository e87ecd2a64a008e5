package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestBusy: an operation beyond MaxWaiting waiting ones is refused at once, and these are not
// harmed.
func TestBusy(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3, func(c *redlock.Config) { c.MaxWaiting = 4 })
		held := cluster.MustAcquire(t, r.Client, "held", ttl)
		r.Servers.Hang()
		// A sent operation does not wait, and the number sent at a time is the client's business: a
		// turn under way may take up waiting ones just after a refusal. So submit until it has
		// refused for several of the watchdog's ticks.
		done := make(chan error, 1000)
		accepted := 0
		for refused := time.Now(); time.Since(refused) < 200*time.Millisecond; {
			op := &redlock.Op{Kind: redlock.OpAcquire, Key: fmt.Append(nil, accepted), TTL: ttl}
			op.Done = func(op *redlock.Op) { done <- op.Err() }
			if err := r.Submit(op); err != nil {
				require.Equal(t, redlock.ErrBusy, err)
				time.Sleep(time.Millisecond)
				continue
			}
			accepted++
			refused = time.Now()
			require.Less(t, accepted, cap(done), "there is no bound")
		}
		require.GreaterOrEqual(t, accepted, 4)
		left := held.Remaining()
		testkit.AtOnce(t, func() {
			_, err := r.TryAcquire(t.Context(), "k", ttl)
			require.Equal(t, redlock.ErrBusy, err)
			require.Equal(t, redlock.ErrBusy, held.Extend(t.Context(), 100*time.Millisecond))
			require.Equal(t, redlock.ErrBusy, held.Release(t.Context()))
		})
		require.Greater(t, held.Remaining(), left-testkit.Patience, "an extension that was not sent shortens nothing")

		ctx, cancel := context.WithCancel(t.Context())
		waiting := testkit.InBackground(func() (redlock.Lock, error) { return r.Acquire(ctx, "k", ttl) })
		r.Heal(t)
		for range accepted {
			require.NoError(t, testkit.Get(t, done))
		}
		require.NoError(t, testkit.Get(t, waiting).Err, "Acquire tries again")
		cancel()
		require.NoError(t, held.Release(t.Context()))
	})
}

// TestOpOfAnotherLockIsOwed: an Op acquires a lock never received by one node, and then releases
// another. This is not taken for the release of the first.
func TestOpOfAnotherLockIsOwed(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte("held"), TTL: ttl}
		require.NoError(t, cluster.Submit(t, r.Client, op))
		held := op.Token
		testkit.Await(t, "set everywhere", func() bool { return r.Holders("held") == 3 })
		r.Servers[2].Down()
		testkit.Await(t, "node 2 down", func() bool { return !r.Stats().Nodes[2].Up })
		op.Key = []byte("unheard of")
		require.NoError(t, cluster.Submit(t, r.Client, op))
		op.Kind = redlock.OpRelease
		require.NoError(t, cluster.Submit(t, r.Client, op))
		op.Kind, op.Key = redlock.OpAcquire, []byte("unheard of")
		require.NoError(t, cluster.Submit(t, r.Client, op))
		last := op.Token
		op.Kind, op.Key, op.Token = redlock.OpRelease, []byte("held"), held
		require.NoError(t, cluster.Submit(t, r.Client, op))
		op.Key, op.Token = []byte("unheard of"), last
		require.NoError(t, cluster.Submit(t, r.Client, op))
		require.NoError(t, r.Servers[2].Heal())
		r.AwaitEmpty(t)
	})
}
