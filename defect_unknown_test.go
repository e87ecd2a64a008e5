package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/fakeredis"
)

// TestDefectNoValidityAfterRelease: once a release was asked for, its outcome
// may be unknown, but the lock must not be relied upon any more: another client
// may hold it.
func TestDefectNoValidityAfterRelease(t *testing.T) {
	each := func(f func(*fakeredis.Server)) func(*rig) {
		return func(r *rig) {
			for _, s := range r.servers {
				f(s)
			}
		}
	}
	background := func() context.Context { return context.Background() }
	ended := func() context.Context {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		return ctx
	}
	expiring := func() context.Context {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	onBothPaths(t, func(t *testing.T, portable bool) {
		for name, c := range map[string]struct {
			ctx  func() context.Context
			harm func(*rig)
			want error
		}{
			"context ended before": {ended, each((*fakeredis.Server).Mute), context.Canceled},
			"context ends":         {expiring, each((*fakeredis.Server).Mute), context.DeadlineExceeded},
			"no quorum answers": {background, func(r *rig) {
				for _, s := range r.servers[:2] {
					s.ErrorReply("EVALSHA", "BUSY Redis is busy running a script", 1)
				}
			}, redlock.ErrNoQuorum},
			"reset after it was applied": {background, each(func(s *fakeredis.Server) {
				s.Inject(fakeredis.Fault{On: "EVALSHA", Do: fakeredis.Reset, Applied: true, Times: 1})
			}), redlock.ErrNoQuorum},
			"reset before it was applied": {background, each(func(s *fakeredis.Server) {
				s.Inject(fakeredis.Fault{On: "EVALSHA", Do: fakeredis.Reset, Times: 1})
			}), redlock.ErrNoQuorum},
		} {
			t.Run(name, func(t *testing.T) {
				r := newBoundRig(t, startN(t, 3), portably(portable))
				l := mustAcquire(t, r.Client, "k", ttl)
				awaitSoon(t, bound, "on all nodes", func() bool { return r.holders("k") == 3 })
				c.harm(r)
				err := soon(t, "Release", start(func() error { return l.Release(c.ctx()) }))
				require.ErrorIs(t, err, c.want)
				require.Zero(t, l.Remaining())
			})
		}
		t.Run("while it is under way", func(t *testing.T) {
			r := newBoundRig(t, startN(t, 3), portably(portable))
			l := mustAcquire(t, r.Client, "k", ttl)
			awaitSoon(t, bound, "on all nodes", func() bool { return r.holders("k") == 3 })
			for _, s := range r.servers {
				s.Mute()
			}
			released := start(func() error { return l.Release(context.Background()) })
			r.awaitAll(t, 1, "EVALSHA", "k")
			require.Zero(t, l.Remaining())
			r.heal(t)
			require.NoError(t, soon(t, "Release", released))
		})
		t.Run("an extend that was under way", func(t *testing.T) {
			r := newBoundRig(t, startN(t, 3), portably(portable))
			l := mustAcquire(t, r.Client, "k", ttl)
			awaitSoon(t, bound, "on all nodes", func() bool { return r.holders("k") == 3 })
			for _, s := range r.servers {
				s.Mute()
			}
			extended := start(func() error { return l.Extend(context.Background(), 2*ttl) })
			r.awaitAll(t, 1, "EVALSHA", "k")
			require.Equal(t, context.Canceled, soon(t, "Release", start(func() error { return l.Release(ended()) })))
			r.heal(t)
			_ = soon(t, "Extend", extended) // it may have come first
			require.Zero(t, l.Remaining(), "the release came behind it")
		})
	})
}

// TestDefectRefusedReleaseKeepsValidity: where nothing was sent, nothing ends.
func TestDefectRefusedReleaseKeepsValidity(t *testing.T) {
	t.Run("ErrBusy", func(t *testing.T) {
		r := newBoundRig(t, startN(t, 3), func(c *redlock.Config) { c.MaxWaiting = 1 })
		l := mustAcquire(t, r.Client, "k", ttl)
		unclogged := r.clog(t)
		require.Equal(t, redlock.ErrBusy, soon(t, "Release", start(func() error { return l.Release(context.Background()) })))
		require.Greater(t, l.Remaining(), ttl/2)
		r.heal(t)
		unclogged()
		require.NoError(t, l.Extend(t.Context(), ttl))
		require.NoError(t, l.Release(t.Context()))
	})
	t.Run("ErrClosed", func(t *testing.T) {
		r := newBoundRig(t, startN(t, 3))
		l := mustAcquire(t, r.Client, "k", ttl)
		require.NoError(t, soon(t, "Close", start(r.Close)))
		require.Equal(t, redlock.ErrClosed, soon(t, "Release", start(func() error { return l.Release(context.Background()) })))
		require.Greater(t, l.Remaining(), ttl/2)
	})
}
