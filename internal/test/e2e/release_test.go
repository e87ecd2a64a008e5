package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestReleaseResults: released if a quorum deleted our key, not held if the denials rule it out,
// unknown otherwise.
func TestReleaseResults(t *testing.T) {
	gone := func(s *fakeredis.Server) { s.Del("k") }
	anothers := func(s *fakeredis.Server) { s.Set("k", "another's", 0) }
	refused := func(s *fakeredis.Server) { s.ErrorReply("EVALSHA", "BUSY Redis is busy running a script", 1) }
	foreign := func(s *fakeredis.Server) { s.Del("k"); s.Plant("k", "list") }
	type harm = []func(*fakeredis.Server)
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
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
				r := cluster.New(t, 5, cluster.Portable(portable))
				l := cluster.MustAcquire(t, r.Client, "k", ttl)
				testkit.Await(t, "on all nodes", func() bool { return r.Holders("k") == 5 })
				for i, harm := range c.harm {
					harm(r.Servers[i])
				}
				err := l.Release(t.Context())
				if c.want == nil {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, c.want)
				}
				if c.want != redlock.ErrNoQuorum {
					require.Empty(t, l.Token(), "known")
					require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()))
					return
				}
				require.Equal(t, "k", l.Key(), "unknown: it can be tried again")
				err = l.Release(t.Context())
				require.True(t, err == nil || testkit.IsAny(err, redlock.ErrNotHeld), "%v", err)
				require.Empty(t, l.Token())
				r.AwaitEmpty(t)
			})
		}
	})
}

// TestReleaseWithEndedContext is sent all the same. The result is the
// context's error, unless the answer was quicker.
func TestReleaseWithEndedContext(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		for range 20 {
			l := cluster.MustAcquire(t, r.Client, "k", ttl)
			if err := l.Release(ended(t)); err != nil {
				require.Equal(t, context.Canceled, err)
			}
			r.AwaitEmpty(t)
		}
		// No node answers: Release does not wait, and the release is not lost.
		l := cluster.MustAcquire(t, r.Client, "k", ttl)
		testkit.Await(t, "on all nodes", func() bool { return r.Holders("k") == 3 })
		r.Servers.Hang()
		testkit.AtOnce(t, func() { require.Equal(t, context.Canceled, l.Release(ended(t))) })
		r.Heal(t)
		r.AwaitEmpty(t)

		// In the queue it keeps its place before an acquire of the key.
		l = cluster.MustAcquire(t, r.Client, "k", ttl)
		unclogged := r.Clog(t)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		released := testkit.Start(func() error { return l.Release(ctx) })
		testkit.Await(t, "the release", func() bool { return l.Remaining() == 0 })
		acquired := cluster.Begin(t, r.Client, acquireOp("k"))
		require.Equal(t, context.DeadlineExceeded, testkit.Outcome(t, "Release", released))
		r.Heal(t)
		unclogged()
		require.NoError(t, testkit.Outcome(t, "the acquire", acquired))
	})
}

// TestReleasesAreOwed: connections end at any moment, and callers give up at any moment. Keys set
// for them, and releases missed by an absent node, are made up for on its next connection. No key
// waits for its TTL.
func TestReleasesAreOwed(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3, cluster.NodeTimeout(50*time.Millisecond))
		for _, s := range r.Servers { // a round trip takes some of the ticks at which contexts are looked at
			r.Machine.Link(s.Addr()).Delay(2*time.Millisecond, 2*time.Millisecond, 4*time.Millisecond)
		}
		rng := rand.New(rand.NewPCG(1, 1))
		limited := func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Duration(rng.IntN(20_000))*time.Microsecond)
		}
		for i := range 500 {
			if i%10 == 0 {
				s := r.Servers[rng.IntN(3)]
				time.AfterFunc(time.Duration(rng.IntN(10_000))*time.Microsecond, s.ResetConns)
			}
			ctx, cancel := limited(t.Context())
			if l, err := r.TryAcquire(ctx, fmt.Sprint(i), ttl); err == nil {
				ctx, cancel := limited(t.Context())
				_ = l.Release(ctx) // once, with any result
				cancel()
			}
			cancel()
		}
		require.Greater(t, cluster.Settle(t, r.Client).Cleanups, uint64(10))
		r.AwaitEmpty(t)
	})
}
