package redlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
)

// TestAcquireWaitsUntilFreed, whether the holder releases or just ends.
func TestAcquireWaitsUntilFreed(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		r := newRig(t, 3, portably(portable))
		other := newClient(t, []string{r.servers[0].Addr(), r.servers[1].Addr(), r.servers[2].Addr()})
		for name, free := range map[string]func(redlock.Lock){
			"released": func(l redlock.Lock) { require.NoError(t, l.Release(t.Context())) },
			"expired": func(redlock.Lock) {
				for _, s := range r.servers {
					s.Del("k")
				}
			},
		} {
			holder := mustAcquire(t, other, "k", ttl)
			tried := len(r.heard[0].all("SET", "k"))
			waiter := inBackground(func() (redlock.Lock, error) { return r.Acquire(t.Context(), "k", ttl) })
			await(t, "tries", func() bool { return len(r.heard[0].all("SET", "k")) > tried+5 })
			require.Empty(t, waiter, name)
			free(holder)
			got := get(t, waiter)
			require.NoError(t, got.err)
			require.NoError(t, got.lock.Release(t.Context()))
			r.awaitEmpty(t)
		}
	})
}

// TestAcquireWaitsOutAnOutage: too few nodes are no reason to give up.
func TestAcquireWaitsOutAnOutage(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		r := newRig(t, 3, portably(portable))
		for _, s := range r.servers {
			s.ErrorReply("SET", "LOADING Redis is loading the dataset in memory", 3)
		}
		l, err := r.Acquire(t.Context(), "k", ttl)
		require.NoError(t, err)
		require.NoError(t, l.Release(t.Context()))

		r.servers[0].Down()
		r.servers[1].Down()
		waiter := inBackground(func() (redlock.Lock, error) { return r.Acquire(t.Context(), "k", ttl) })
		_, err = r.TryAcquire(t.Context(), "another", ttl)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		r.heal(t)
		require.NoError(t, get(t, waiter).err)
	})
}

// TestAcquireEndsWithItsContext, during an attempt and during a pause, with
// exactly the context's error, and leaves no key behind.
func TestAcquireEndsWithItsContext(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		for name, pause := range map[string]time.Duration{"in an attempt": time.Millisecond, "in a pause": time.Hour} {
			t.Run(name, func(t *testing.T) {
				r := newRig(t, 5, portably(portable), func(c *redlock.Config) { c.RetryMin, c.RetryMax = pause, pause })
				for _, s := range r.servers[:3] {
					s.Set("k", "another's", 0)
				}
				tries := 1
				if pause < time.Second {
					tries = 10
				}

				ctx, cancel := context.WithCancelCause(t.Context())
				waiter := inBackground(func() (redlock.Lock, error) { return r.Acquire(ctx, "k", ttl) })
				r.awaitAll(t, tries, "SET", "k")
				cancel(errors.New("not shown"))
				require.Equal(t, context.Canceled, get(t, waiter).err)

				ctx, stop := context.WithTimeout(t.Context(), 30*time.Millisecond)
				defer stop()
				_, err := r.Acquire(ctx, "k", ttl)
				require.Equal(t, context.DeadlineExceeded, err)

				await(t, "nothing of ours left", func() bool { return r.holders("k") == 3 })
			})
		}
	})
}

// TestRetryPauses are at least RetryMin long.
func TestRetryPauses(t *testing.T) {
	r := newRig(t, 1, func(c *redlock.Config) { c.RetryMin, c.RetryMax = 20*time.Millisecond, 30*time.Millisecond })
	r.servers[0].Set("k", "another's", 0)
	ctx, cancel := context.WithCancel(t.Context())
	waiter := inBackground(func() (redlock.Lock, error) { return r.Acquire(ctx, "k", ttl) })
	r.awaitAll(t, 6, "SET", "k")
	cancel()
	require.Equal(t, context.Canceled, get(t, waiter).err)
	tries := r.heard[0].all("SET", "k")
	for i, c := range tries[1:] {
		// The pause began after the answer, which came after this.
		require.GreaterOrEqual(t, c.at.Sub(tries[i].at), 20*time.Millisecond)
	}
}

// TestManyWaitersTakeTurns: one key, many callers, all of them served in the end.
func TestManyWaitersTakeTurns(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		r := newRig(t, 3, portably(portable))
		holders := make(chan struct{}, 1)
		var wg sync.WaitGroup
		for range 32 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				l, err := r.Acquire(t.Context(), "k", ttl)
				if err != nil {
					t.Error(err)
					return
				}
				select {
				case holders <- struct{}{}:
				default:
					t.Error("two holders")
				}
				<-holders
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}()
		}
		wg.Wait()
		r.awaitEmpty(t)
	})
}
