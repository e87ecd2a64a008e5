package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/fakeredis"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// TestReleaseResults: released if a quorum deleted our key, not held if the
// denials rule that out, unknown otherwise.
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
					require.Empty(t, l.Key(), "known")
					require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()))
					return
				}
				require.Equal(t, "k", l.Key(), "unknown: it can be tried again")
				err = l.Release(t.Context())
				require.True(t, err == nil || testkit.IsAny(err, redlock.ErrNotHeld), "%v", err)
				require.Empty(t, l.Key())
				r.AwaitEmpty(t)
			})
		}
	})
}

// TestReleaseWithEndedContext is sent all the same. The result is the
// context's error, unless the answer was quicker.
func TestReleaseWithEndedContext(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		r := cluster.New(t, 3, cluster.Portable(portable))
		for range 20 {
			l := cluster.MustAcquire(t, r.Client, "k", ttl)
			if err := l.Release(ended); err != nil {
				require.Equal(t, context.Canceled, err)
			}
			r.AwaitEmpty(t)
		}
		// No node answers: Release does not wait, and the release is not lost.
		l := cluster.MustAcquire(t, r.Client, "k", ttl)
		testkit.Await(t, "on all nodes", func() bool { return r.Holders("k") == 3 })
		for _, s := range r.Servers {
			s.Hang()
		}
		testkit.AtOnce(t, func() { require.Equal(t, context.Canceled, l.Release(ended)) })
		r.Heal(t)
		r.AwaitEmpty(t)
	})
}

// endingContexts are contexts that end before a release, or during it.
var endingContexts = map[string]bool{"ended before": true, "ends meanwhile": false}

// TestReleaseKeepsItsPlace: a release whose context ends while it waits is sent
// before the acquire of the same key that waits behind it.
func TestReleaseKeepsItsPlace(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		for name, endsBefore := range endingContexts {
			t.Run(name, func(t *testing.T) {
				r := cluster.New(t, 3, cluster.Portable(portable))
				held := cluster.MustAcquire(t, r.Client, "k", ttl)
				r.AwaitHolders(t, 3, "k")
				token := held.Token()
				unclogged := r.Clog(t)
				waiting := r.Stats().Waiting
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if endsBefore {
					cancel()
				}
				released := testkit.Start(func() error { return held.Release(ctx) })
				testkit.Await(t, "the release waits", func() bool { return r.Stats().Waiting > waiting })
				if endsBefore {
					require.Equal(t, context.Canceled, testkit.Outcome(t, "Release", released))
				}
				acquired := cluster.Begin(t, r.Client, acquireOp("k"))
				if !endsBefore {
					cancel()
					require.Equal(t, context.Canceled, testkit.Outcome(t, "Release", released))
				}
				r.Heal(t)
				unclogged()
				require.NoError(t, testkit.Outcome(t, "the acquire", acquired), "it came before the release")
				cluster.Settle(t, r.Client)
				for i, rec := range r.Recorders {
					releases, sets := rec.Calls("EVALSHA", token), rec.Calls("SET", "k")
					require.Len(t, releases, 1, "node %d", i)
					require.Len(t, sets, 2)
					require.False(t, sets[1].At.Before(releases[0].At), "node %d heard the acquire first", i)
				}
			})
		}
	})
}

// TestReleaseIsSentOnce: a release that is in flight when its context has ended
// is not sent again.
func TestReleaseIsSentOnce(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		for name, endsBefore := range endingContexts {
			t.Run(name, func(t *testing.T) {
				r := cluster.New(t, 3, cluster.Portable(portable))
				for range 3 {
					held := cluster.MustAcquire(t, r.Client, "k", ttl)
					r.AwaitHolders(t, 3, "k")
					cluster.Settle(t, r.Client)
					token := held.Token()
					for _, s := range r.Servers {
						s.Mute()
					}
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if endsBefore {
						cancel()
					}
					released := testkit.Start(func() error { return held.Release(ctx) })
					r.AwaitCalls(t, 1, "EVALSHA", token)
					cancel()
					require.Equal(t, context.Canceled, testkit.Outcome(t, "Release", released))
					r.Heal(t)
					behind := acquireOp("k")
					require.NoError(t, cluster.Submit(t, r.Client, behind))
					behind.Kind = redlock.OpRelease
					require.NoError(t, cluster.Submit(t, r.Client, behind))
					cluster.Settle(t, r.Client)
					for i, rec := range r.Recorders {
						require.Len(t, rec.Calls("EVALSHA", token), 1, "node %d heard the release twice", i)
					}
				}
			})
		}
	})
}
