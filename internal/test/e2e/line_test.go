package e2e

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestFirstThatLeaves wakes the next, for any reason: its context ends, or user code panics just
// before it asks the nodes.
func TestFirstThatLeaves(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		var broken atomic.Bool
		r := cluster.New(t, 3, func(c *redlock.Config) {
			knobs.Of(c).Rand = userReader(func(p []byte) (int, error) {
				if broken.CompareAndSwap(true, false) {
					panic("no randomness")
				}
				return rand.Read(p)
			})
		}).NoPushes()
		r.Servers.Take("k")
		ctx, cancel := context.WithCancel(t.Context())
		var waits []<-chan error
		for i := range 3 {
			own := t.Context()
			if i == 0 {
				own = ctx
			}
			waits = append(waits, testkit.Start(func() error {
				l, err := r.Acquire(own, "k", ttl)
				if err == nil {
					err = l.Release(context.Background())
				}
				return err
			}))
			testkit.Await(t, "in line", func() bool { return r.Stats().InLine == i+1 })
		}
		cancel()
		require.ErrorIs(t, testkit.Outcome(t, "the first", waits[0]), context.Canceled)
		broken.Store(true)
		require.ErrorContains(t, testkit.Outcome(t, "the second", waits[1]), "no randomness")
		r.Servers.Del("k")
		require.NoError(t, testkit.Outcome(t, "the third", waits[2]))
		require.Zero(t, r.Stats().InLine)
	})
}

// TestWhatIsNotPassedOn: a lock with a known token, or with too little time left, goes back to the
// nodes.
func TestWhatIsNotPassedOn(t *testing.T) {
	for name, c := range map[string]struct {
		held time.Duration
		use  func(l redlock.Lock)
		want uint64
	}{
		"as it is":     {ttl, func(redlock.Lock) {}, 1},
		"token told":   {ttl, func(l redlock.Lock) { _ = l.Token() }, 0},
		"too little":   {ttl / 2, func(redlock.Lock) {}, 0},
		"more":         {2 * ttl, func(redlock.Lock) {}, 0},
		"kept alive":   {ttl, func(l redlock.Lock) { _, _ = l.KeepAlive(context.Background()) }, 1},
		"was extended": {ttl / 2, func(l redlock.Lock) { _ = l.Extend(context.Background(), ttl) }, 1},
	} {
		cluster.Run(t, name, func(t *testing.T) {
			r := cluster.New(t, 3)
			held := cluster.MustAcquire(t, r.Client, "k", c.held)
			c.use(held)
			next := inLine(t, r.Client, t.Context(), "k", 1)
			require.NoError(t, held.Release(t.Context()))
			got := locked(t, next)
			require.Equal(t, c.want, r.Stats().HandedOver)
			require.Greater(t, got.Remaining(), ttl/8*7-time.Second)
			require.Equal(t, redlock.ErrNotHeld, held.Extend(t.Context(), ttl))
			require.Zero(t, held.Remaining())
			require.NoError(t, got.Release(t.Context()))
		})
	}
}

// TestReleaseBesideRelease: of two releases of a lock one passes it on. The other must not delete
// the key of the next holder: it has the same token. Its caller learns that the lock is not held, but LockLost is not called:
// it was released.
func TestReleaseBesideRelease(t *testing.T) {
	for _, hook := range []func(redlock.Attempt){nil, func(redlock.Attempt) {}} { // without hooks a release has a path of its own
		cluster.Virtually(t, func(t *testing.T) {
			r := cluster.New(t, 3, func(c *redlock.Config) {
				if c.Hooks.Attempt = hook; hook != nil {
					c.Hooks.LockLost = func(string, error) { t.Error("it was released") }
				}
			})
			held := cluster.MustAcquire(t, r.Client, "k", ttl)
			var next <-chan testkit.Result[redlock.Lock]
			ctx := userContext{t.Context(), in("Done", sync.OnceFunc(func() {
				next = inLine(t, r.Client, t.Context(), "k", 1)
				held.ReleaseAsync()
			}))}
			require.Equal(t, redlock.ErrNotHeld, held.Release(ctx))
			got := locked(t, next)
			require.EqualValues(t, 1, r.Stats().HandedOver)
			require.Equal(t, 3, r.Holders("k"))
			require.NoError(t, got.Release(t.Context()))
		})
	}
}
