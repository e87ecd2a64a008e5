package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/fakeredis"
)

// TestExtendIsTrue: a node whose key is gone or another's is no vote, a
// majority of those is the end of the lock, and no key is made or touched.
func TestExtendIsTrue(t *testing.T) {
	for name, lose := range map[string]func(*fakeredis.Server){
		"gone":         func(s *fakeredis.Server) { s.Del("k") },
		"another's":    func(s *fakeredis.Server) { s.Set("k", "another's", 10*ttl) },
		"foreign type": func(s *fakeredis.Server) { s.Del("k"); s.Plant("k", "list") },
	} {
		onBothPaths(t, func(t *testing.T, portable bool) {
			for lost := range 6 {
				r := newRig(t, 5, portably(portable))
				l := mustAcquire(t, r.Client, "k", ttl)
				await(t, "on all nodes", func() bool { return r.holders("k") == 5 })
				for _, s := range r.servers[:lost] {
					lose(s)
				}
				before := make([]time.Duration, lost)
				for i, s := range r.servers[:lost] {
					before[i] = s.TTL("k")
				}
				err := l.Extend(t.Context(), 2*ttl)
				r.awaitAll(t, 1, "EVALSHA", "k")
				if lost <= 2 {
					require.NoError(t, err, name)
					require.Greater(t, l.Remaining(), ttl)
				} else {
					require.Equal(t, redlock.ErrNotHeld, err, name)
					require.Zero(t, l.Remaining(), "it is lost")
					require.Equal(t, redlock.ErrExpired, l.Extend(t.Context(), ttl), "and stays so")
				}
				for i, s := range r.servers[:lost] {
					require.LessOrEqual(t, s.TTL("k"), before[i])
				}
				if name == "gone" {
					await(t, "no key made", func() bool { return r.holders("k") == 5-lost })
				}
				_ = l.Release(t.Context())
			}
		})
	}
}

// TestExtendNeverRevives: once validity is over nobody is asked, though the
// keys may still be there.
func TestExtendNeverRevives(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		r := newRigOf(t, startN(t, 3, fakeredis.Options{Now: stopped()}), portably(portable))
		l := mustAcquire(t, r.Client, "k", 300*time.Millisecond)
		await(t, "the end", func() bool { return l.Remaining() == 0 })
		require.Equal(t, redlock.ErrExpired, l.Extend(t.Context(), ttl))
		require.Zero(t, l.Remaining())
		require.NoError(t, l.Release(t.Context()))
		for _, s := range r.servers {
			await(t, "the release", func() bool { return s.Count("EVALSHA") > 0 })
			require.EqualValues(t, 1, s.Count("EVALSHA"))
		}
	})
}

// TestExtendTooLate: an extension that is confirmed when its TTL is over is none.
func TestExtendTooLate(t *testing.T) {
	r := newRigOf(t, startN(t, 3, fakeredis.Options{Now: stopped()}))
	l := mustAcquire(t, r.Client, "k", ttl)
	for _, s := range r.servers {
		s.Delay(40 * time.Millisecond)
	}
	require.Equal(t, redlock.ErrExpired, l.Extend(t.Context(), 30*time.Millisecond))
	require.Zero(t, l.Remaining(), "the nodes have the short TTL")
}

// TestUnconfirmedExtension never lengthens what is left, and shortens it if it
// asked for less: some nodes may have heard.
func TestUnconfirmedExtension(t *testing.T) {
	refuse := func(r *rig, t *testing.T, d time.Duration, l redlock.Lock) {
		for _, s := range r.servers[:3] {
			s.ErrorReply("EVALSHA", "BUSY Redis is busy running a script", 1)
		}
		require.ErrorIs(t, l.Extend(t.Context(), d), redlock.ErrNoQuorum)
	}
	for name, fail := range map[string]func(*rig, *testing.T, time.Duration, redlock.Lock){
		"no quorum": refuse,
		"cancelled": func(r *rig, t *testing.T, d time.Duration, l redlock.Lock) {
			for _, s := range r.servers {
				s.Hang()
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			require.Equal(t, context.DeadlineExceeded, l.Extend(ctx, d))
			r.heal(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBothPaths(t, func(t *testing.T, portable bool) {
				r := newRig(t, 5, portably(portable))
				l := mustAcquire(t, r.Client, "k", ttl)
				left := l.Remaining()
				fail(r, t, 2*ttl, l)
				require.Less(t, l.Remaining(), left)
				require.Greater(t, l.Remaining(), left-patience, "still held")

				fail(r, t, ttl/5, l)
				require.Less(t, l.Remaining(), ttl/5-drift(ttl/5))
				require.Positive(t, l.Remaining())

				require.NoError(t, l.Extend(t.Context(), ttl), "and can be extended again")
				require.Greater(t, l.Remaining(), ttl/5)
				require.NoError(t, l.Release(t.Context()))
			})
		})
	}
}

// TestExtendAgainstRelease of the same lock, at once: the key is gone in the
// end, and nobody believes to hold it.
func TestExtendAgainstRelease(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		r := newRig(t, 3, portably(portable))
		for range 50 {
			l := mustAcquire(t, r.Client, "k", ttl)
			extended := make(chan error, 1)
			go func() { extended <- l.Extend(t.Context(), 2*ttl) }()
			require.NoError(t, l.Release(t.Context()))
			if err := get(t, extended); err != nil {
				require.Equal(t, redlock.ErrNotHeld, err)
			}
			require.Zero(t, l.Remaining())
			r.awaitEmpty(t)
		}
	})
}
