package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/fakeredis"
)

// TestReleaseResults: released if a quorum deleted our key, not held if the
// denials rule that out, unknown otherwise.
func TestReleaseResults(t *testing.T) {
	gone := func(s *fakeredis.Server) { s.Del("k") }
	anothers := func(s *fakeredis.Server) { s.Set("k", "another's", 0) }
	refused := func(s *fakeredis.Server) { s.ErrorReply("EVALSHA", "BUSY Redis is busy running a script", 1) }
	foreign := func(s *fakeredis.Server) { s.Del("k"); s.Plant("k", "list") }
	type harm = []func(*fakeredis.Server)
	onBothPaths(t, func(t *testing.T, portable bool) {
		for name, c := range map[string]struct {
			harm harm
			want error
		}{
			"all well":        {nil, nil},
			"two gone":        {harm{gone, gone}, nil},
			"two refused":     {harm{refused, refused}, nil},
			"one of each":     {harm{gone, refused}, nil},
			"three gone":      {harm{gone, gone, gone}, redlock.ErrNotHeld},
			"three another's": {harm{anothers, anothers, anothers}, redlock.ErrNotHeld},
			"three foreign":   {harm{foreign, foreign, foreign}, redlock.ErrNotHeld},
			"three refused":   {harm{refused, refused, refused}, redlock.ErrNoQuorum},
			"two and one":     {harm{gone, gone, refused}, redlock.ErrNoQuorum},
			"one and two":     {harm{gone, refused, refused}, redlock.ErrNoQuorum},
		} {
			t.Run(name, func(t *testing.T) {
				r := newRig(t, 5, portably(portable))
				l := mustAcquire(t, r.Client, "k", ttl)
				await(t, "on all nodes", func() bool { return r.holders("k") == 5 })
				for i, harm := range c.harm {
					harm(r.servers[i])
				}
				err := l.Release(t.Context())
				if c.want == nil {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, c.want)
				}
				if c.want != redlock.ErrNoQuorum {
					require.Empty(t, l.Key(), "known")
					require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()))
					return
				}
				require.Equal(t, "k", l.Key(), "unknown: it can be tried again")
				err = l.Release(t.Context())
				require.True(t, err == nil || isOneOf(err, redlock.ErrNotHeld), "%v", err)
				require.Empty(t, l.Key())
				r.awaitEmpty(t)
			})
		}
	})
}

// TestReleaseUnknownThenKnown: what was not answered the first time is answered
// the second.
func TestReleaseUnknownThenKnown(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		r := newRig(t, 3, portably(portable), nodeTimeout(20*time.Millisecond))
		l, err := r.Acquire(t.Context(), "k", ttl)
		require.NoError(t, err)
		for _, s := range r.servers {
			s.Mute()
		}
		require.ErrorIs(t, l.Release(t.Context()), redlock.ErrNoQuorum)
		require.Equal(t, "k", l.Key())
		r.heal(t)
		await(t, "an answer", func() bool {
			err := l.Release(t.Context()) // the first one was carried out
			return err == redlock.ErrNotHeld
		})
		r.awaitEmpty(t)
	})
}

// TestReleaseAfterValidity still gives the keys back.
func TestReleaseAfterValidity(t *testing.T) {
	r := newRigOf(t, startN(t, 3, fakeredis.Options{Now: stopped()}))
	l, err := r.Acquire(t.Context(), "k", redlock.MinTTL)
	require.NoError(t, err)
	await(t, "the end", func() bool { return l.Remaining() == 0 })
	require.NoError(t, l.Release(t.Context()))
	r.awaitEmpty(t)
}

// TestReleaseWithEndedContext is sent all the same. The result is the
// context's error, unless the answer was quicker.
func TestReleaseWithEndedContext(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	onBothPaths(t, func(t *testing.T, portable bool) {
		r := newRig(t, 3, portably(portable))
		for range 20 {
			l := mustAcquire(t, r.Client, "k", ttl)
			if err := l.Release(ended); err != nil {
				require.Equal(t, context.Canceled, err)
			}
			r.awaitEmpty(t)
		}
		// Nobody answers: it does not wait, and the release is not lost.
		l := mustAcquire(t, r.Client, "k", ttl)
		await(t, "on all nodes", func() bool { return r.holders("k") == 3 })
		for _, s := range r.servers {
			s.Hang()
		}
		atOnce(t, func() { require.Equal(t, context.Canceled, l.Release(ended)) })
		r.heal(t)
		r.awaitEmpty(t)
	})
}

// TestReleaseCancelledInTheQueue: what was taken back before it was sent is
// sent after all.
func TestReleaseCancelledInTheQueue(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	onBothPaths(t, func(t *testing.T, portable bool) {
		r := newRig(t, 3, portably(portable))
		var locks []redlock.Lock
		for _, key := range []string{"a", "b", "c", "d"} {
			locks = append(locks, mustAcquire(t, r.Client, key, ttl))
			await(t, "on all nodes", func() bool { return r.holders(key) == 3 })
		}
		for _, s := range r.servers {
			s.Hang()
		}
		for _, l := range locks { // the first is on its way, the last ones wait
			require.Equal(t, context.Canceled, l.Release(ended))
		}
		r.heal(t)
		r.awaitEmpty(t)
	})
}
