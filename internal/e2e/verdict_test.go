package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/fakeredis"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// TestQuorumIsOfTheConfiguredNodes: with so many of N nodes down, hung or taken
// by another client, a lock is won exactly as long as N/2+1 are left.
func TestQuorumIsOfTheConfiguredNodes(t *testing.T) {
	spoil := map[string]func(*fakeredis.Server){
		"down":  (*fakeredis.Server).Down,
		"taken": func(s *fakeredis.Server) { s.Set("k", "another's", 0) },
		"barred": func(s *fakeredis.Server) {
			s.ErrorReply("SET", "OOM command not allowed when used memory > 'maxmemory'.", 0)
		},
	}
	want := map[string]error{"down": redlock.ErrNoQuorum, "taken": redlock.ErrTaken, "barred": redlock.ErrNoQuorum}
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		for name, harm := range spoil {
			for n := 1; n <= 7; n++ {
				for bad := range n + 1 {
					t.Run(fmt.Sprintf("%d of %d %s", bad, n, name), func(t *testing.T) {
						servers := cluster.Start(t, n)
						for _, s := range servers[:bad] {
							harm(s)
						}
						r := cluster.Of(t, servers, cluster.Portable(portable))
						testkit.AtOnce(t, func() {
							l, err := r.TryAcquire(t.Context(), "k", ttl)
							if n-bad < n/2+1 {
								require.ErrorIs(t, err, want[name])
								return
							}
							require.NoError(t, err)
							require.NoError(t, l.Release(t.Context()))
						})
						for _, s := range servers[bad:] {
							testkit.Await(t, "empty", func() bool { return s.Len() == 0 })
						}
					})
				}
			}
		}
	})
}

// TestSlowestNodesDelayNoCaller: the verdict comes with the quorum, in both
// directions and for all three operations, while the others hang.
func TestSlowestNodesDelayNoCaller(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		r := cluster.New(t, 5, cluster.Portable(portable))
		for _, s := range r.Servers[:3] {
			s.Set("taken", "another's", 0)
		}
		var lost [3]redlock.Lock
		for i := range lost {
			key := fmt.Sprint("lost ", i)
			lost[i] = cluster.MustAcquire(t, r.Client, key, ttl)
			for _, s := range r.Servers {
				testkit.Await(t, "set", func() bool { _, ok := s.Get(key); return ok })
			}
			for _, s := range r.Servers[:3] {
				s.Del(key)
			}
		}
		r.Servers[3].Hang()
		r.Servers[4].HangDeaf()

		for _, lost := range lost { // the hung ones owe more each time
			testkit.AtOnce(t, func() {
				l := cluster.MustAcquire(t, r.Client, "k", ttl)
				require.NoError(t, l.Extend(t.Context(), ttl))
				require.NoError(t, l.Release(t.Context()))
				_, err := r.TryAcquire(t.Context(), "taken", ttl)
				require.Equal(t, redlock.ErrTaken, err)
				require.Equal(t, redlock.ErrNotHeld, lost.Extend(t.Context(), ttl))
				require.Equal(t, redlock.ErrNotHeld, lost.Release(t.Context()))
			})
		}
	})
}

// TestLostAsSoonAsQuorumIsImpossible: three refusals of five end the attempt,
// and with two more nodes out of reach three are not even needed of one kind.
func TestLostAsSoonAsQuorumIsImpossible(t *testing.T) {
	taken := func(s *fakeredis.Server) { s.Set("k", "another's", 0) }
	barred := func(s *fakeredis.Server) { s.ErrorReply("SET", "MISCONF Errors writing to the AOF file", 0) }
	cut := func(s *fakeredis.Server) { s.DropConn("SET", 1) }
	hung := (*fakeredis.Server).Hang
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		for name, c := range map[string]struct {
			harm []func(*fakeredis.Server)
			want error
		}{
			"denied":                {[]func(*fakeredis.Server){taken, taken, taken, hung, hung}, redlock.ErrTaken},
			"refused":               {[]func(*fakeredis.Server){barred, barred, barred, hung, hung}, redlock.ErrNoQuorum},
			"cut off":               {[]func(*fakeredis.Server){cut, cut, cut, hung, hung}, redlock.ErrNoQuorum},
			"denied and refused":    {[]func(*fakeredis.Server){taken, barred, cut, hung, hung}, redlock.ErrTaken},
			"with grants":           {[]func(*fakeredis.Server){taken, barred, taken}, redlock.ErrTaken},
			"more denied than not":  {[]func(*fakeredis.Server){taken, taken, taken, barred, hung}, redlock.ErrTaken},
			"more refused than not": {[]func(*fakeredis.Server){barred, barred, barred, taken, hung}, nil}, // depends on who is first
		} {
			t.Run(name, func(t *testing.T) {
				r := cluster.New(t, 5, cluster.Portable(portable))
				for i, harm := range c.harm {
					harm(r.Servers[i])
				}
				testkit.AtOnce(t, func() {
					_, err := r.TryAcquire(t.Context(), "k", ttl)
					require.Error(t, err)
					if c.want != nil {
						require.ErrorIs(t, err, c.want)
					}
				})
			})
		}
	})
}

// TestNodeTimeoutEndsAnAttempt that hung nodes keep open, for all three
// operations.
func TestNodeTimeoutEndsAnAttempt(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		r := cluster.New(t, 3, cluster.Portable(portable), cluster.NodeTimeout(150*time.Millisecond))
		l := cluster.MustAcquire(t, r.Client, "held", ttl)
		r.Servers[0].Hang()
		r.Servers[1].Hang()
		_, err := r.TryAcquire(t.Context(), "k", ttl)
		for _, err := range []error{err, l.Extend(t.Context(), ttl), l.Release(t.Context())} {
			var quorum *redlock.QuorumError
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
			require.True(t, errors.As(err, &quorum))
			require.Len(t, quorum.Failed, 2)
			require.Equal(t, 1, quorum.Granted)
			require.ErrorContains(t, quorum.Failed[0].Err, "no answer in time")
		}
		r.Heal(t)
		r.AwaitEmpty(t)
	})
}

// TestDownNodeCostsNothing: it is a failed vote at once, nothing is kept for
// it, and it takes part again when it is back.
func TestDownNodeCostsNothing(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		servers := cluster.Start(t, 5)
		servers[0].Down()
		servers[1].Down()
		r := cluster.Of(t, servers, cluster.Portable(portable))
		testkit.AtOnce(t, func() {
			for i := range 50 {
				l := cluster.MustAcquire(t, r.Client, fmt.Sprint("early ", i), ttl)
				require.NoError(t, l.Extend(t.Context(), ttl))
				require.NoError(t, l.Release(t.Context()))
			}
		})
		r.Heal(t)
		r.AwaitUp(t)
		for i := range 50 {
			for _, e := range r.Recorders[:2] {
				require.Empty(t, e.Calls("SET", fmt.Sprint("early ", i)))
				require.Empty(t, e.Calls("EVALSHA", fmt.Sprint("early ", i)))
			}
		}
		for _, s := range r.Servers[2:] {
			s.Down()
		}
		testkit.Await(t, "two nodes of five are no quorum", func() bool {
			_, err := r.TryAcquire(t.Context(), "late", ttl)
			return errors.Is(err, redlock.ErrNoQuorum)
		})
		testkit.AtOnce(t, func() {
			for range 50 {
				_, err := r.TryAcquire(t.Context(), "late", ttl)
				require.ErrorIs(t, err, redlock.ErrNoQuorum)
			}
		})
	})
}
