package e2e

import (
	"context"
	"crypto/rand"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestAttemptsAreUsedUp: an Acquire makes as many as Retry allows, with a pause between any two.
// Its error is that of the last one, and of no context.
func TestAttemptsAreUsedUp(t *testing.T) {
	const n, pause = 3, 20 * time.Millisecond
	acquires := map[string]func(ctx context.Context, c *redlock.Client, key string) error{
		"Acquire": func(ctx context.Context, c *redlock.Client, key string) error {
			return errorOf(c.Acquire(ctx, key, ttl))
		},
		"AcquireAll": func(ctx context.Context, c *redlock.Client, key string) error {
			return errorOf(c.AcquireAll(ctx, ttl, key))
		},
	}
	for name, acquire := range acquires {
		cluster.Run(t, name, func(t *testing.T) {
			r := cluster.New(t, 1, func(c *redlock.Config) { c.Retry = redlock.Retry{Min: pause, Attempts: n} }).NoPushes()
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			var total time.Duration
			for waits, key := range []string{"k", "other"} { // the first finds out that there are no pushes
				r.Servers[0].Set(key, "another's", 0)
				err := acquire(ctx, r.Client, key)
				requireOnly(t, err, redlock.ErrTaken)
				var gaveUp *redlock.AcquireError
				require.ErrorAs(t, err, &gaveUp)
				require.Equal(t, redlock.AcquireError{Key: key, Attempts: n, Waited: gaveUp.Waited, Last: redlock.ErrTaken}, *gaveUp)
				require.ErrorContains(t, err, `gave up on "`+key+`" after 3 attempts in `)
				require.ErrorContains(t, err, "Retry.Attempts allows no more")
				tries := r.Recorders[0].Calls("SET", key)
				require.Len(t, tries, n)
				for i := range n - 1 {
					require.GreaterOrEqual(t, tries[i+1].At.Sub(tries[i].At), pause)
				}
				w := r.Stats().Waits
				require.Equal(t, cluster.Waits{UsedUp: uint64(waits) + 1, Total: w.Total, Longest: max(total, w.Total-total)}, w)
				require.GreaterOrEqual(t, w.Total-total, gaveUp.Waited)
				total = w.Total
			}

			r.Servers[0].ErrorReply("SET", "OOM command not allowed", n)
			err := acquire(ctx, r.Client, "k")
			requireOnly(t, err, redlock.ErrNoQuorum)
			var details *redlock.QuorumError
			require.ErrorAs(t, err, &details)
			require.EqualValues(t, 3, r.Stats().Waits.UsedUp)
			require.Zero(t, r.Stats().InLine)
		})
	}
	r := cluster.New(t, 1, func(c *redlock.Config) { c.Retry.Attempts = 1 })
	l := cluster.MustAcquire(t, r.Client, "k", ttl)
	for _, acquire := range acquires {
		requireOnly(t, acquire(t.Context(), r.Client, "k"), redlock.ErrTaken)
	}
	require.NoError(t, l.Release(t.Context()))
	require.Zero(t, r.Stats().Waits, "one attempt is no wait")
}

// TestWaits: each waiting Acquire counts once, by its end. Standing in line, and getting a lock by
// hand-over there, is no attempt.
func TestWaits(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		heard := make(chan redlock.Acquisition, 10)
		var broken atomic.Bool
		r := cluster.New(t, 3, func(c *redlock.Config) {
			c.Retry = redlock.Retry{Min: testkit.Patience, Attempts: 2}
			c.Hooks.Acquire = func(a redlock.Acquisition) { heard <- a }
			knobs.Of(c).Rand = userReader(func(p []byte) (int, error) {
				if broken.Load() {
					return 0, errors.New("none left")
				}
				return rand.Read(p)
			})
		})
		var want cluster.Waits
		check := func(attempts int, handedOver bool) {
			t.Helper()
			a := testkit.Get(t, heard)
			require.Equal(t, attempts, a.Attempts)
			require.Equal(t, handedOver, a.HandedOver)
			got := r.Stats().Waits
			require.Greater(t, got.Total, want.Total)
			require.GreaterOrEqual(t, got.Longest, want.Longest)
			require.LessOrEqual(t, got.Longest, got.Total)
			want.Total, want.Longest = got.Total, got.Longest
			require.Equal(t, want, got)
		}
		type result = testkit.Result[redlock.Lock]
		wait := func(ctx context.Context, place int) <-chan result {
			t.Helper()
			c := testkit.InBackground(func() (redlock.Lock, error) { return r.Acquire(ctx, "k", ttl) })
			testkit.Await(t, "in line", func() bool { return r.Stats().InLine == place })
			time.Sleep(time.Millisecond) // no wait is of no time
			return c
		}

		l, err := r.Acquire(t.Context(), "k", ttl)
		require.NoError(t, err)
		require.Zero(t, r.Stats().Waits)
		require.Equal(t, 1, testkit.Get(t, heard).Attempts)

		first, second := wait(t.Context(), 1), wait(t.Context(), 2)
		for i, c := range []<-chan result{first, second} {
			require.NoError(t, l.Release(t.Context()))
			got := testkit.Get(t, c)
			require.NoError(t, got.Err)
			l = got.Value
			want.HandedOver++
			check(1-i, true)
		}

		next := wait(t.Context(), 1)
		_ = l.Token() // it is not passed on
		require.NoError(t, l.Release(t.Context()))
		got := testkit.Get(t, next)
		require.NoError(t, got.Err)
		want.Granted++
		check(1, false) // the key is known to be contended: it did not ask before it was in line

		ctx, cancel := context.WithCancel(t.Context())
		next = wait(ctx, 1)
		cancel()
		requireOnly(t, testkit.Get(t, next).Err, context.Canceled, redlock.ErrTaken)
		want.GaveUp++
		check(0, false)

		next = wait(t.Context(), 1)
		broken.Store(true)
		_ = got.Value.Token()
		require.NoError(t, got.Value.Release(t.Context()))
		require.ErrorContains(t, testkit.Get(t, next).Err, "none left")
		want.Failed++
		check(1, false)
		broken.Store(false)

		cluster.MustAcquire(t, r.Client, "k", ttl)
		before := r.Stats().Acquire.Denied
		next = wait(t.Context(), 1)
		testkit.Await(t, "refused", func() bool { return r.Stats().Acquire.Denied > before })
		require.NoError(t, r.Close())
		require.Equal(t, redlock.ErrClosed, testkit.Get(t, next).Err)
		want.Closed++
		check(1, false)
	})
}
