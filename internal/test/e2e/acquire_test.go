package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
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
			ctx := testkit.Limited(t, time.Hour)
			for waits, key := range []string{"k", "other"} { // the first finds out that there are no pushes
				r.Servers[0].Set(key, "another's", 0)
				err := acquire(ctx, r.Client, key)
				requireOnly(t, err, redlock.ErrTaken)
				gaveUp := testkit.As[*redlock.AcquireError](t, err)
				require.Equal(t, redlock.AcquireError{Key: key, Attempts: n, Waited: gaveUp.Waited, Last: redlock.ErrTaken}, *gaveUp)
				require.ErrorContains(t, err, `gave up on "`+key+`" after 3 attempts in `)
				require.ErrorContains(t, err, "its limit (Attempts or Wait) is reached")
				tries := r.Recorders[0].Calls("SET", key)
				require.Len(t, tries, n)
				for i := range n - 1 {
					require.GreaterOrEqual(t, tries[i+1].At.Sub(tries[i].At), pause)
				}
				w := r.Stats().Waits
				require.Equal(t, cluster.Waits{UsedUp: uint64(waits) + 1, Total: w.Total, Longest: w.Longest}, w)
			}

			r.Servers[0].ErrorReply("SET", "OOM command not allowed", n)
			err := acquire(ctx, r.Client, "k")
			requireOnly(t, err, redlock.ErrNoQuorum)
			testkit.As[*redlock.QuorumError](t, err)
			require.EqualValues(t, 3, r.Stats().Waits.UsedUp)
			require.Zero(t, r.Stats().InLine)
		})
	}
	cluster.Run(t, "other attempts", func(t *testing.T) {
		r := cluster.New(t, 3, func(c *redlock.Config) { c.Retry.Attempts = 2 })
		r.Servers.Take("k")
		few := r.With(redlock.Options{Attempts: 4, Wait: time.Hour}) // in place of those of Retry
		for c, want := range map[*redlock.Client]int{r.Client: 2, few: 4, few.With(redlock.Options{Attempts: 1}): 1, few.With(redlock.Options{Name: "n"}): 4} {
			err := errorOf(c.Acquire(t.Context(), "k", ttl))
			require.Equal(t, want, testkit.As[*redlock.AcquireError](t, err).Attempts)
			requireOnly(t, err, redlock.ErrTaken)
		}
		held := cluster.MustAcquire(t, r.Client, "l", ttl) // a key that none waits for
		one, waits := r.With(redlock.Options{Attempts: 1}), r.Stats().Waits.UsedUp
		for _, acquire := range acquires {
			requireOnly(t, acquire(t.Context(), one, "l"), redlock.ErrTaken)
		}
		require.Equal(t, waits, one.Stats().Waits.UsedUp, "one attempt is no wait")
		require.NoError(t, held.Release(t.Context()))
		require.EqualValues(t, 1, one.Stats().Nodes[0].Connects, "it is one client")
		require.NoError(t, one.Shutdown(t.Context()))
		require.Equal(t, redlock.ErrClosed, errorOf(r.TryAcquire(t.Context(), "k", ttl)))
	})
}

// TestWaits: each waiting Acquire counts once, by its end, and its hook has what its caller gets. Standing in line, and getting
// a lock by hand-over there, is no attempt. A hook that panics takes no lock from its caller. Of those that fail see
// TestFenceBadInput.
func TestWaits(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		heard := make(chan redlock.Acquisition, 10)
		r := cluster.New(t, 3, func(c *redlock.Config) {
			c.Retry = redlock.Retry{Min: testkit.Patience, Attempts: 2}
			c.Hooks.Acquire = func(a redlock.Acquisition) {
				heard <- a
				if a.Key == "bad" {
					panic("of the hook")
				}
			}
		})
		var want cluster.Waits
		check := func(ctx context.Context, attempts int, handedOver bool, err error) {
			t.Helper()
			a := testkit.Get(t, heard)
			require.Equal(t, redlock.Acquisition{Key: "k", Attempts: attempts, HandedOver: handedOver, Waited: a.Waited, Ended: a.Ended, Err: err, Ctx: ctx}, a)
			require.Positive(t, a.Waited)
			got := r.Stats().Waits
			require.Greater(t, got.Total, want.Total)
			require.GreaterOrEqual(t, got.Longest, want.Longest)
			require.LessOrEqual(t, got.Longest, got.Total)
			require.Equal(t, got.Total, r.Stats().WaitTimes.Sum)
			want.Total, want.Longest = got.Total, got.Longest
			require.Equal(t, want, got)
		}
		wait := func(ctx context.Context, place int) <-chan testkit.Result[redlock.Lock] {
			t.Helper()
			c := inLine(t, r.Client, ctx, "k", place)
			time.Sleep(time.Millisecond) // no wait is of no time
			return c
		}

		require.NoError(t, errorOf(r.TryAcquire(t.Context(), "other", ttl)))
		require.Error(t, errorOf(r.Acquire(t.Context(), "", ttl)))
		require.ErrorIs(t, errorOf(r.Acquire(ended(t), "k", ttl)), context.Canceled)
		require.Empty(t, heard, "there was no attempt")
		require.NoError(t, errorOf(r.Acquire(t.Context(), "bad", ttl)))
		require.Equal(t, "bad", testkit.Get(t, heard).Key)

		l := testkit.Must(r.Acquire(t.Context(), "k", ttl))(t)
		require.Zero(t, r.Stats().Waits)
		require.Equal(t, 1, testkit.Get(t, heard).Attempts)

		first, second := wait(t.Context(), 1), wait(t.Context(), 2)
		for i, c := range []<-chan testkit.Result[redlock.Lock]{first, second} {
			require.NoError(t, l.Release(t.Context()))
			l = locked(t, c)
			want.HandedOver++
			check(t.Context(), 1-i, true, nil)
		}

		next := wait(t.Context(), 1)
		_ = l.Token() // it is not passed on
		require.NoError(t, l.Release(t.Context()))
		locked(t, next)
		want.Granted++
		check(t.Context(), 1, false, nil) // the key is known to be contended: it did not ask before it was in line

		ctx, cancel := context.WithCancelCause(t.Context())
		next = wait(ctx, 1)
		cause := errors.New("a cause of one's own")
		cancel(cause)
		err := testkit.Get(t, next).Err
		requireOnly(t, err, context.Canceled, redlock.ErrTaken)
		require.ErrorIs(t, err, cause)
		gaveUp := testkit.As[*redlock.AcquireError](t, err)
		require.Equal(t, redlock.AcquireError{Key: "k", Waited: gaveUp.Waited, Last: redlock.ErrTaken, Ctx: gaveUp.Ctx}, *gaveUp)
		want.GaveUp++
		check(ctx, 0, false, err)

		before := r.Stats().Acquire.Denied
		next = wait(t.Context(), 1)
		testkit.Await(t, "refused", func() bool { return r.Stats().Acquire.Denied > before })
		require.NoError(t, r.Close())
		require.Equal(t, redlock.ErrClosed, testkit.Get(t, next).Err)
		want.Closed++
		check(t.Context(), 1, false, redlock.ErrClosed)
	})
}

// TestPausesAfterSplitsAreOfTrips, however long the first attempt has waited to be sent.
func TestPausesAfterSplitsAreOfTrips(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3, cluster.NodeTimeout(time.Minute), func(c *redlock.Config) { c.StallTimeout = time.Minute })
		const keys, wait = 10, 200 * time.Millisecond
		for i := range keys {
			for n, s := range r.Servers[1:] {
				s.Set(fmt.Sprint(i), fmt.Sprint(foreign, n), time.Hour)
			}
		}
		r.Servers.Hang()
		blocker := testkit.InBackground(func() (redlock.Lock, error) { return r.TryAcquire(t.Context(), "blocker", ttl) })
		testkit.Await(t, "the blocker", func() bool { return cluster.Stats(t, r.Client).InFlight == 1 })
		var tried []<-chan testkit.Result[redlock.Lock]
		for i := range keys {
			tried = append(tried, testkit.InBackground(func() (redlock.Lock, error) { return r.TryAcquire(t.Context(), fmt.Sprint(i), ttl) }))
		}
		time.Sleep(wait)
		r.Heal(t)
		r.Servers.Delay(time.Millisecond)
		began := time.Now()
		for _, c := range tried {
			require.Equal(t, redlock.ErrTaken, testkit.Get(t, c).Err)
		}
		require.Less(t, time.Since(began), wait)
		require.NoError(t, testkit.Get(t, blocker).Err)
	})
}
