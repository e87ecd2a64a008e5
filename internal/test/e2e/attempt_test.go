package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestFreshTokenForEachAttempt: no two attempts of one Acquire show the same token, and all nodes
// are shown the same one.
func TestFreshTokenForEachAttempt(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3).NoPushes()
		r.Servers.Take("k")
		acquired := testkit.InBackground(func() (redlock.Lock, error) { return r.Acquire(t.Context(), "k", ttl) })
		r.AwaitCalls(t, 20, "SET", "k")
		r.Servers.Del("k")
		got := locked(t, acquired)

		won := got.Token()
		testkit.Await(t, "the last attempt", func() bool { return len(r.Recorders[0].Calls("SET", won)) == 1 })
		seen := map[string]bool{}
		for i, c := range r.Recorders[0].Calls("SET", "k") {
			token := c.Args[2]
			require.Len(t, token, 22)
			require.False(t, seen[token], "shown twice")
			seen[token] = true
			for _, e := range r.Recorders {
				testkit.Await(t, "the same attempt", func() bool { return len(e.Calls("SET", "k")) > i })
				require.Equal(t, token, e.Calls("SET", "k")[i].Args[2])
			}
		}
		require.True(t, seen[won])
		require.NoError(t, got.Release(t.Context()))
	})
}

// TestQuorumIsOfTheConfiguredNodes: with so many of N nodes down, hung or taken by another client,
// a lock is won exactly as long as N/2+1 are left.
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
			for _, n := range []int{1, 2, 3, 5} {
				for bad := range n + 1 {
					t.Run(fmt.Sprintf("%d of %d %s", bad, n, name), func(t *testing.T) {
						servers := cluster.Start(t, n)
						servers[:bad].Each(harm)
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
		r.Servers[:3].Take("taken")
		var lost [3]redlock.Lock
		for i := range lost {
			key := fmt.Sprint("lost ", i)
			lost[i] = cluster.MustAcquire(t, r.Client, key, ttl)
			for _, s := range r.Servers {
				testkit.Await(t, "set", func() bool { _, ok := s.Get(key); return ok })
			}
			r.Servers[:3].Del(key)
		}
		r.Servers[3].Hang()
		r.Servers[4].HangUnread()

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
