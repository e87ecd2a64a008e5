package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestAcquireWaitsUntilFreed, whether the holder releases or just ends.
func TestAcquireWaitsUntilFreed(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3).NoPushes()
		other := cluster.Connect(t, []string{r.Servers[0].Addr(), r.Servers[1].Addr(), r.Servers[2].Addr()})
		for name, free := range map[string]func(redlock.Lock){
			"released": func(l redlock.Lock) { require.NoError(t, l.Release(t.Context())) },
			"expired": func(redlock.Lock) {
				r.Servers.Del("k")
			},
		} {
			holder := cluster.MustAcquire(t, other, "k", ttl)
			tried := len(r.Recorders[0].Calls("SET", "k"))
			waiter := testkit.InBackground(func() (redlock.Lock, error) { return r.Acquire(t.Context(), "k", ttl) })
			testkit.Await(t, "tries", func() bool { return len(r.Recorders[0].Calls("SET", "k")) > tried+5 })
			require.Empty(t, waiter, name)
			free(holder)
			got := testkit.Get(t, waiter)
			require.NoError(t, got.Err)
			require.NoError(t, got.Value.Release(t.Context()))
			r.AwaitEmpty(t)
		}
	})
}

// TestAcquireEndsWithItsContext, during an attempt and during a pause, with an error that is the
// context's, its cause's and the last attempt's; and leaves no key.
func TestAcquireEndsWithItsContext(t *testing.T) {
	for name, pause := range map[string]time.Duration{"in an attempt": time.Millisecond, "in a pause": time.Hour} {
		cluster.Run(t, name, func(t *testing.T) {
			r := cluster.New(t, 5, func(c *redlock.Config) { c.Retry = redlock.Retry{Min: pause, Max: pause} }).NoPushes()
			r.Servers.Take("k")
			tries := 1
			if pause < time.Second {
				tries = 10
			}

			ctx, cancel := context.WithCancelCause(t.Context())
			waiter := testkit.InBackground(func() (redlock.Lock, error) { return r.Acquire(ctx, "k", ttl) })
			r.AwaitCalls(t, tries, "SET", "k")
			cause := errors.New("a cause of one's own")
			cancel(cause)
			err := testkit.Get(t, waiter).Err
			for _, is := range []error{context.Canceled, cause, redlock.ErrTaken} {
				require.ErrorIs(t, err, is)
			}
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			var gaveUp *redlock.AcquireError
			require.ErrorAs(t, err, &gaveUp)
			require.Equal(t, "k", gaveUp.Key)
			require.GreaterOrEqual(t, gaveUp.Attempts, tries)
			require.Equal(t, redlock.ErrTaken, gaveUp.Last)
			require.Positive(t, gaveUp.Waited)
			require.Less(t, gaveUp.Waited, testkit.Patience)

			ctx, stop := context.WithTimeout(t.Context(), 30*time.Millisecond)
			defer stop()
			_, err = r.Acquire(ctx, "k", ttl)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorAs(t, err, &gaveUp)
			require.Equal(t, context.DeadlineExceeded, gaveUp.Ctx)
			require.GreaterOrEqual(t, gaveUp.Waited, 20*time.Millisecond)

			testkit.Await(t, "nothing of ours left", func() bool { return r.Holders("k") == 5 })
		})
	}
}

// TestAcquireThatNoNodeHasAnswered gives up with no claim about the lock.
func TestAcquireThatNoNodeHasAnswered(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3, cluster.NodeTimeout(testkit.Patience))
		r.Servers.Hang()
		for _, acquire := range []func(context.Context) (redlock.Lock, error){
			func(ctx context.Context) (redlock.Lock, error) { return r.Acquire(ctx, "k", ttl) },
			func(ctx context.Context) (redlock.Lock, error) { return r.AcquireAll(ctx, ttl, "a", "b") },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			defer cancel()
			_, err := acquire(ctx)
			var gaveUp *redlock.AcquireError
			require.ErrorAs(t, err, &gaveUp)
			require.NoError(t, gaveUp.Last)
			requireOnly(t, err, context.DeadlineExceeded)
		}
	})
}

// TestRetryPausesDiffer: otherwise callers waiting for one lock would collide again and again. None
// is shorter than Retry.Min, but the first: a caller asks again once it is in line.
func TestRetryPausesDiffer(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 1, func(c *redlock.Config) {
			c.Retry = redlock.Retry{Min: 5 * time.Millisecond, Max: 100 * time.Millisecond}
		}).NoPushes()
		r.Servers[0].Set("k", "another's", 0)
		ctx, cancel := context.WithCancel(t.Context())
		waiter := testkit.InBackground(func() (redlock.Lock, error) { return r.Acquire(ctx, "k", ttl) })
		r.AwaitCalls(t, 16, "SET", "k")
		cancel()
		require.ErrorIs(t, testkit.Get(t, waiter).Err, context.Canceled)
		tries, long := r.Recorders[0].Calls("SET", "k"), 0
		for i, c := range tries[2:] {
			// The pause began after the answer, and the answer came after this.
			pause := c.At.Sub(tries[i+1].At)
			require.GreaterOrEqual(t, pause, 5*time.Millisecond)
			if pause >= 25*time.Millisecond {
				long++
			}
		}
		require.GreaterOrEqual(t, long, 2, "of fourteen ten are; that hardly any is happens less than once in a million times")
	})
}
