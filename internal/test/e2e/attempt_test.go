package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

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

// checkCleanedUp waits until every master has received the SET and, after it on
// the same connection, the release of the same token, and has no key left.
func checkCleanedUp(t *testing.T, r *cluster.Cluster, key string) {
	t.Helper()
	r.AwaitCalls(t, 1, "SET", key)
	r.AwaitCalls(t, 1, "EVALSHA", key)
	r.AwaitEmpty(t)
	for _, e := range r.Recorders {
		set, release := e.Calls("SET", key), e.Calls("EVALSHA", key)
		require.Len(t, set, 1, "nothing is sent twice")
		require.Len(t, release, 1)
		require.Equal(t, set[0].Conn, release[0].Conn)
		require.False(t, release[0].At.Before(set[0].At))
		require.Contains(t, release[0].Args, set[0].Args[2], "the token")
	}
}

// TestFailedAttemptsCleanUpBehindThemselves: however an attempt ends, its release follows its SET
// to every node, and no caller waits for it. The clock of the masters stands still, so no key ends
// by itself.
func TestFailedAttemptsCleanUpBehindThemselves(t *testing.T) {
	still := fakeredis.Options{Now: testkit.StoppedClock()}
	start := func(t *testing.T, timeout time.Duration) *cluster.Cluster {
		return cluster.Of(t, cluster.Start(t, 5, still), cluster.NodeTimeout(timeout))
	}
	outages := map[string]func(*fakeredis.Server){
		"hung": (*fakeredis.Server).Hang, "unread": (*fakeredis.Server).HangUnread, "mute": (*fakeredis.Server).Mute,
	}
	for name, outage := range outages {
		for bad := 3; bad <= 5; bad++ {
			cluster.Run(t, fmt.Sprintf("timeout, %d %s", bad, name), func(t *testing.T) {
				r := start(t, 20*time.Millisecond)
				r.Servers[:bad].Each(outage)
				_, err := r.TryAcquire(t.Context(), "k", ttl)
				require.ErrorIs(t, err, redlock.ErrNoQuorum)
				r.Heal(t)
				checkCleanedUp(t, r, "k")
			})
		}
		cluster.Run(t, "deadline, "+name, func(t *testing.T) {
			r := start(t, testkit.Patience)
			r.Servers.Each(outage)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			_, err := r.TryAcquire(ctx, "k", ttl)
			require.Equal(t, context.DeadlineExceeded, err)
			r.Heal(t)
			checkCleanedUp(t, r, "k")
		})
	}
	cluster.Run(t, "cancelled", func(t *testing.T) {
		r := start(t, testkit.Patience)
		r.Servers.Mute()
		ctx, cancel := context.WithCancel(t.Context())
		attempt := testkit.InBackground(func() (redlock.Lock, error) { return r.TryAcquire(ctx, "k", ttl) })
		r.AwaitCalls(t, 1, "SET", "k")
		cancel()
		require.Equal(t, context.Canceled, testkit.Get(t, attempt).Err)
		// The wire is busy with a batch without an answer, so the release waits for that.
		r.Heal(t)
		checkCleanedUp(t, r, "k")
	})
	cluster.Run(t, "answers too late", func(t *testing.T) {
		r := start(t, testkit.Patience)
		r.Servers.Delay(40 * time.Millisecond)
		_, err := r.TryAcquire(t.Context(), "k", 30*time.Millisecond)
		require.Equal(t, redlock.ErrExpired, err)
		checkCleanedUp(t, r, "k")
	})
	cluster.Run(t, "minority refused", func(t *testing.T) {
		r := start(t, testkit.Patience)
		r.Servers[:3].Each(func(s *fakeredis.Server) { s.ErrorReply("SET", "OOM command not allowed", 0) })
		_, err := r.TryAcquire(t.Context(), "k", ttl)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		checkCleanedUp(t, r, "k")
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
