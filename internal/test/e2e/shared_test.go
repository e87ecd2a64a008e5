package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// sharedHolders is how many hold a shared lock at each master.
func sharedHolders(r *cluster.Cluster, key string) (all []int) {
	for _, s := range r.Servers {
		holders, _ := s.Holders(key)
		all = append(all, len(holders))
	}
	return all
}

func awaitShared(t *testing.T, r *cluster.Cluster, key string, want ...int) {
	t.Helper()
	testkit.Await(t, fmt.Sprint("holders of ", key, ": ", want), func() bool { return slices.Equal(sharedHolders(r, key), want) })
}

func mustShare(t *testing.T, c *redlock.Client, key string, ttl time.Duration) redlock.Lock {
	t.Helper()
	return testkit.Must(c.TryAcquireShared(t.Context(), key, ttl))(t)
}

// TestShared: many hold a shared lock at once, and none beside an exclusive holder, by this library or by any SET NX.
func TestShared(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3, func(c *redlock.Config) { c.Name = "reader" })
		other := cluster.Connect(t, fakeredis.Addrs(r.Servers), func(c *redlock.Config) { c.Name = "another" })
		var locks []redlock.Lock
		for i := range 10 {
			locks = append(locks, mustShare(t, []*redlock.Client{r.Client, other}[i%2], "k", ttl/time.Duration(i+1)))
		}
		awaitShared(t, r, "k", 10, 10, 10)
		for _, c := range []*redlock.Client{r.Client, other} {
			require.Equal(t, redlock.ErrTaken, errorOf(c.TryAcquire(t.Context(), "k", ttl)))
			require.ErrorIs(t, c.TryDo(t.Context(), "k", ttl, func(context.Context) error { return nil }), redlock.ErrTaken)
			require.Equal(t, redlock.ErrTaken, errorOf(c.TryAcquireAll(t.Context(), ttl, "j", "k")))
		}
		require.Zero(t, locks[0].Fence())
		require.Equal(t, []string{"k"}, locks[0].Keys())
		require.InDelta(t, ttl-cluster.Drift(ttl), locks[0].Remaining(), float64(time.Second))

		state := testkit.Must(r.Inspect(t.Context(), "k"))(t)
		require.Equal(t, redlock.KeyShared, state.Status)
		require.Equal(t, "shared", state.Status.String())
		require.Equal(t, 10, state.Holders)
		require.Equal(t, []string{"another", "reader"}, state.Names)
		require.InDelta(t, ttl, state.TTL, float64(time.Second))
		require.Empty(t, state.Holder+state.Digest+state.Token())
		require.False(t, state.IsHeldBy(locks[0]))
		for _, n := range state.Nodes {
			require.NoError(t, n.Err)
			require.Equal(t, 10, n.Holders)
			require.InDelta(t, ttl, n.TTL, float64(time.Second))
			require.Empty(t, n.Holder+n.Digest)
		}
		require.ErrorIs(t, errorOf(r.Attach(t.Context(), "k", locks[0].Token(), time.Now().Add(ttl))), redlock.ErrArgument)
		require.ErrorIs(t, errorOf(r.Attach(t.Context(), "k", "another", time.Now().Add(ttl))), redlock.ErrNotHeld)

		// The key ends with the last holder that is left.
		require.NoError(t, locks[9].Extend(t.Context(), 2*ttl))
		for i, l := range locks {
			require.Greater(t, r.Servers[0].TTL("k"), 3*ttl/2)
			if i < 9 {
				require.NoError(t, l.Release(t.Context()))
				require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()))
				require.Equal(t, redlock.ErrNotHeld, l.Extend(t.Context(), ttl))
			}
		}
		awaitShared(t, r, "k", 1, 1, 1)
		locks[9].ReleaseAsync()
		r.AwaitEmpty(t)

		cluster.MustAcquire(t, r.Client, "k", ttl)
		require.Equal(t, redlock.ErrTaken, errorOf(other.TryAcquireShared(t.Context(), "k", ttl)))
		r.Servers[0].Set("j", "redsync's", 0)
		r.Servers[1].Set("j", "redsync's", 0)
		require.ErrorIs(t, other.TryDoShared(t.Context(), "j", ttl, func(context.Context) error { return nil }), redlock.ErrTaken)
		s := cluster.Stats(t, other)
		require.Equal(t, [2]uint64{5, 5}, [2]uint64{s.Acquire.Won, s.Release.Won})
	})
}

// TestDoShared: as Do. A Do inside another on its key is refused, as it might wait for itself.
func TestDoShared(t *testing.T) {
	testDo(t, (*redlock.Client).DoShared)
	cluster.On(t, 3, func(t *testing.T, r *cluster.Cluster) {
		require.NoError(t, r.DoShared(t.Context(), "k", brief, func(ctx context.Context) error {
			require.NoError(t, r.TryDoShared(context.Background(), "k", brief, nothing))
			require.ErrorIs(t, r.DoShared(ctx, "k", brief, nothing), redlock.ErrArgument)
			_, ok := redlock.FenceFrom(ctx)
			require.False(t, ok)
			return nil
		}))
		r.AwaitEmpty(t)
	})
}

// TestSharedGate: a gate refuses new holders, and says that the lock is taken at once: the votes are not split. Those
// who hold it extend it.
func TestSharedGate(t *testing.T) {
	cluster.On(t, 3, func(t *testing.T, r *cluster.Cluster) {
		l := mustShare(t, r.Client, "k", ttl)
		r.Servers[:2].Each(func(s *fakeredis.Server) { s.Set("k:redlock:gate", "a writer's", time.Minute) })
		before := cluster.Stats(t, r.Client).Acquire.Denied
		_, err := r.TryAcquireShared(t.Context(), "k", ttl)
		requireOnly(t, err, redlock.ErrTaken)
		require.ErrorContains(t, err, "exclusive callers come first") // no holder was seen
		require.Equal(t, before+1, cluster.Stats(t, r.Client).Acquire.Denied)
		awaitShared(t, r, "k", 1, 1, 1)
		require.NoError(t, l.Extend(t.Context(), ttl))
		r.Servers[0].Del("k:redlock:gate")
		mustShare(t, r.Client, "k", ttl)
	})
}

// TestSharedOp is the same without a waiting caller, in one group and for a key that moves to another.
func TestSharedOp(t *testing.T) {
	for name, moves := range map[string]bool{"one group": false, "two groups": true} {
		cluster.Run(t, name, func(t *testing.T) {
			servers, key, change := cluster.Start(t, 3), "k", func(*redlock.Config) {}
			if moves {
				servers, key = cluster.Start(t, 9), movingKey(t, 0, 2)
				change = groupsFromTo(servers, 2, 3)
			}
			r := cluster.Of(t, servers, change)
			count := func() (all int) {
				for _, n := range sharedHolders(r, key) {
					all += n
				}
				return all
			}
			ops := []*redlock.Op{{Key: []byte(key), TTL: ttl}, {Key: []byte(key), TTL: ttl}}
			nodes := min(len(servers), 6)
			for i, op := range ops {
				require.NoError(t, submitAs(t, r.Client, op, redlock.OpAcquireShared))
				require.Zero(t, op.Fence())
				require.Positive(t, op.Remaining())
				testkit.Await(t, "on all nodes", func() bool { return count() == (i+1)*nodes })
			}
			require.Equal(t, redlock.ErrTaken, submitAs(t, r.Client, &redlock.Op{Key: []byte(key), TTL: ttl}, redlock.OpAcquire))
			exclusive := &redlock.Op{Key: []byte(key)}
			exclusive.SetToken(ops[0].Token())
			require.Equal(t, redlock.ErrNotHeld, submitAs(t, r.Client, exclusive, redlock.OpRelease))
			require.NoError(t, submitAs(t, r.Client, ops[0], redlock.OpExtendShared))
			require.NoError(t, submitAs(t, r.Client, ops[0], redlock.OpReleaseShared))
			require.Equal(t, redlock.ErrNotHeld, submitAs(t, r.Client, ops[0], redlock.OpExtendShared))
			testkit.Await(t, "the other stays", func() bool { return count() == nodes })
			require.NoError(t, submitAs(t, r.Client, ops[1], redlock.OpReleaseShared))
			l := testkit.Must(r.AcquireShared(t.Context(), key, ttl))(t)
			require.NoError(t, l.Extend(t.Context(), 2*ttl))
			require.NoError(t, l.Release(t.Context()))
			r.AwaitEmpty(t)
			require.ErrorIs(t, r.Submit(&redlock.Op{Kind: redlock.OpReleaseShared + 1, Key: []byte(key)}), redlock.ErrArgument)
		})
	}
}

// TestDenialsOfTheOtherKind: a caller in line hears of no denial that was none for its own kind: of a writer by those who
// share the lock, or of a reader by a gate.
func TestDenialsOfTheOtherKind(t *testing.T) {
	cluster.On(t, 3, func(t *testing.T, r *cluster.Cluster) {
		nodes := fakeredis.Addrs(r.Servers)
		readers, writer := cluster.Connect(t, nodes), cluster.Connect(t, nodes)
		gaveUp := func(acquire func(context.Context, string, time.Duration) (redlock.Lock, error)) *redlock.AcquireError {
			return testkit.As[*redlock.AcquireError](t, errorOf(acquire(testkit.Limited(t, 300*time.Millisecond), "k", ttl)))
		}
		held := mustShare(t, readers, "k", ttl)
		ctx, cancel := context.WithCancel(t.Context())
		first := inLine(t, r.Client, ctx, "k", 1)
		require.NoError(t, gaveUp(r.AcquireShared).Last, "a reader behind a writer")
		require.Equal(t, redlock.ErrTaken, gaveUp(r.Acquire).Last, "a writer behind a writer")
		cancel()
		require.Error(t, (<-first).Err)

		last := inLine(t, writer, t.Context(), "k", 1) // its gate is up
		time.Sleep(100 * time.Millisecond)
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		next := testkit.Start(func() error { return errorOf(r.AcquireShared(ctx, "k", ttl)) })
		testkit.Await(t, "in line", func() bool { return r.Stats().InLine == 1 })
		time.Sleep(50 * time.Millisecond)
		require.ErrorContains(t, gaveUp(r.AcquireShared).Last, "exclusive callers come first", "a reader behind a reader")
		require.NoError(t, gaveUp(r.Acquire).Last, "a writer behind a reader")
		cancel()
		require.Error(t, testkit.Outcome(t, "a reader", next))
		require.NoError(t, held.Release(t.Context()))
		require.NoError(t, locked(t, last).Release(t.Context()))
	})
}

// TestSharedFenced: on fenced fleets shared and fenced locks exclude each other, a shared one has no token, and a node that
// has forgotten its tokens has no vote for it.
func TestSharedFenced(t *testing.T) {
	cluster.On(t, 3, func(t *testing.T, r *cluster.Cluster) {
		require.ErrorIs(t, errorOf(r.TryAcquireShared(t.Context(), "k", brief)), redlock.ErrForgotten, "not initialized")
		require.NoError(t, r.InitFencing(t.Context()))
		l := mustShare(t, r.Client, "k", brief)
		other := mustShare(t, r.Client, "k", brief)
		require.Equal(t, redlock.ErrTaken, errorOf(r.TryAcquire(t.Context(), "k", brief)))
		require.NoError(t, l.Extend(t.Context(), brief))
		require.Zero(t, l.Fence())
		require.NoError(t, l.Release(t.Context()))
		require.NoError(t, other.Release(t.Context()))
		w := cluster.MustAcquire(t, r.Client, "k", brief)
		require.NotZero(t, w.Fence())
		require.Equal(t, redlock.ErrTaken, errorOf(r.TryAcquireShared(t.Context(), "k", brief)))
		require.NoError(t, w.Release(t.Context()))
		r.Servers[:2].Each(func(s *fakeredis.Server) { s.Del(fenceSet) })
		require.ErrorIs(t, errorOf(r.TryAcquireShared(t.Context(), "k", brief)), redlock.ErrForgotten)
		awaitShared(t, r, "k", 0, 0, 0)
	}, fenced(0))
}

// TestRealSharedPrivileges: the documented list is enough for the whole life of shared locks, and with those of Inspect for it.
// Each part of it that other locks do not need is needed. A script that fails for want of one leaves no key without an end.
func TestRealSharedPrivileges(t *testing.T) {
	t.Parallel()
	list, looks := documented("shared:"), []string{"+getrange", "+zcount", "+zrevrangebyscore"}
	require.Subset(t, list.privileges, least.privileges)
	realredis.EachKind(t, func(t *testing.T, kind realredis.Kind) {
		admins, nodes := list.servers(t, kind)
		life := func(inspects bool) int64 {
			var forbidden atomic.Int64
			c := cluster.Connect(t, nodes, func(c *redlock.Config) {
				c.Hooks.Vote = func(v redlock.Vote) {
					if errors.Is(v.Err, conn.ErrForbidden) {
						forbidden.Add(1)
					}
				}
			})
			for i := range 80 {
				var some []redlock.Lock
				for range 2 {
					if l, err := c.TryAcquireShared(t.Context(), "lock:p", ttl/time.Duration(1+i%3)); err == nil {
						some = append(some, l)
					}
				}
				if inspects {
					s, _ := c.Inspect(t.Context(), "lock:p")
					for _, n := range s.Nodes {
						if errors.Is(n.Err, conn.ErrForbidden) {
							forbidden.Add(1)
						}
					}
				}
				for _, l := range some {
					_ = l.Extend(t.Context(), ttl)
					_ = l.Release(t.Context())
				}
				if i%20 == 0 {
					for _, a := range admins {
						require.NotEqual(t, ":-1", a.Do("PTTL lock:p"))
						a.Must("SCRIPT FLUSH")
					}
				}
			}
			require.NoError(t, c.Close())
			return forbidden.Load()
		}
		require.Zero(t, life(false))
		admins.Must("ACL SETUSER locker " + strings.Join(looks, " "))
		require.Zero(t, life(true))
		isOther := func(privilege string) bool { return slices.Contains(least.privileges, privilege) }
		withoutEach(admins, slices.DeleteFunc(slices.Concat(list.privileges, looks), isOther), func(privilege string) {
			require.NotZero(t, life(true), privilege)
		})
		require.Zero(t, life(true))
	})
}
