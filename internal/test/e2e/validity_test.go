package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// heldEverywhere starts masters and acquires a lock known to all of them.
func heldEverywhere(t *testing.T) (*cluster.Cluster, redlock.Lock) {
	t.Helper()
	r := cluster.New(t, 3)
	l := cluster.MustAcquire(t, r.Client, "k", ttl)
	r.AwaitHolders(t, 3, "k")
	return r, l
}

// release releases a lock. It must not take long.
func release(t *testing.T, l redlock.Lock, ctx context.Context) error {
	t.Helper()
	return testkit.Try(t, "Release", func() error { return l.Release(ctx) })
}

// TestReleaseEndsValidity: it ends before the release is sent, whether or not the outcome becomes
// known. From then on another client may hold the lock.
func TestReleaseEndsValidity(t *testing.T) {
	background := context.Background()
	each := func(f func(*fakeredis.Server)) func(fakeredis.Servers) {
		return func(servers fakeredis.Servers) {
			servers.Each(f)
		}
	}
	mute := each((*fakeredis.Server).Mute)
	reset := func(applied bool) func(fakeredis.Servers) {
		return each(func(s *fakeredis.Server) {
			s.Inject(fakeredis.Fault{On: "EVALSHA", Do: fakeredis.Reset, Applied: applied, Times: 1})
		})
	}
	refuse := each(func(s *fakeredis.Server) { s.ErrorReply("EVALSHA", "BUSY Redis is busy running a script", 1) })
	for name, c := range map[string]struct {
		ctx  context.Context // nil: one that ends during the release
		harm func(fakeredis.Servers)
		want error
	}{
		"context ended before":        {ended(t), mute, context.Canceled},
		"context ends":                {nil, mute, context.DeadlineExceeded},
		"no quorum answers":           {background, func(s fakeredis.Servers) { refuse(s[:2]) }, redlock.ErrNoQuorum},
		"reset after it was applied":  {background, reset(true), redlock.ErrNoQuorum},
		"reset before it was applied": {background, reset(false), redlock.ErrNoQuorum},
	} {
		cluster.Run(t, name, func(t *testing.T) {
			r, l := heldEverywhere(t)
			c.harm(r.Servers)
			if c.ctx == nil {
				ctx, cancel := context.WithTimeout(background, 20*time.Millisecond)
				defer cancel()
				c.ctx = ctx
			}
			require.ErrorIs(t, release(t, l, c.ctx), c.want)
			require.Zero(t, l.Remaining())
		})
	}
	cluster.Run(t, "in flight", func(t *testing.T) {
		r, l := heldEverywhere(t)
		mute(r.Servers)
		released := testkit.Start(func() error { return l.Release(background) })
		r.AwaitCalls(t, 1, "EVALSHA", "k")
		require.Zero(t, l.Remaining())
		r.Heal(t)
		require.NoError(t, testkit.Outcome(t, "Release", released))
	})
	cluster.Run(t, "behind an extend", func(t *testing.T) {
		r, l := heldEverywhere(t)
		mute(r.Servers)
		extended := testkit.Start(func() error { return l.Extend(background, 2*ttl) })
		r.AwaitCalls(t, 1, "EVALSHA", "k")
		require.Equal(t, context.Canceled, release(t, l, ended(t)))
		r.Heal(t)
		_ = testkit.Outcome(t, "Extend", extended) // the nodes carried it out first
		require.Zero(t, l.Remaining(), "the release came behind it")
	})
}
