package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// keysOf returns a key in each of some groups.
func keysOf(groups int) (keys []string) {
	for i := 0; len(keys) < groups; i++ {
		if key := fmt.Sprint("key", i); client.Number(key, groups) == len(keys) {
			keys = append(keys, key)
		}
	}
	return keys
}

// TestSetInGroups: keys of several groups are one lock with one token, counted, extended, kept
// alive, lost and released as one.
func TestSetInGroups(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		var y cluster.HookRecorder
		r := cluster.New(t, 9, cluster.InGroups(3), cluster.Listening(&y))
		keys := keysOf(3)
		keys = append(keys, "{"+keys[1]+"}:b")
		acquire := func(d time.Duration) redlock.Lock {
			t.Helper()
			l := testkit.Must(r.AcquireAll(t.Context(), d, keys...))(t)
			require.Equal(t, []string{keys[0], min(keys[1], keys[3]), max(keys[1], keys[3]), keys[2]}, l.Keys())
			require.Equal(t, 1, r.Stats().Held)
			return l
		}
		l := acquire(ttl)
		cluster.Settle(t, r.Client)
		for i, s := range r.Servers {
			for k, key := range keys {
				value, there := s.Get(key)
				require.Equal(t, k%3 == i/3 && k < 3 || k == 3 && i/3 == 1, there)
				if there {
					require.Equal(t, l.Token(), value)
				}
			}
		}
		require.NoError(t, l.Extend(t.Context(), 2*ttl))
		require.Greater(t, l.Remaining(), ttl)
		cluster.Settle(t, r.Client)
		for k, key := range keys[:3] {
			require.Greater(t, r.Servers[3*k].TTL(key), ttl)
		}
		require.NoError(t, l.Release(t.Context()))
		r.Servers[:3].Delay(time.Second)
		l = acquire(ttl)
		require.LessOrEqual(t, l.Remaining(), ttl-time.Second-cluster.Drift(ttl), "counted from before the first group was asked")
		r.Heal(t)
		require.Equal(t, context.Canceled, l.Release(ended(t)))
		acquire(ttl).ReleaseAsync()
		r.AwaitEmpty(t)
		s := cluster.Settle(t, r.Client)
		require.Equal(t, []cluster.Results{{Won: 3}, {Won: 1}, {Won: 2, Cancelled: 1}}, []cluster.Results{s.Acquire, s.Extend, s.Release})
		require.Zero(t, s.Held)

		l = acquire(brief)
		ctx, stop := l.KeepAlive(t.Context())
		defer stop()
		last := cluster.MustAcquire(t, r.Client, "{"+keys[2]+"}:last", brief)
		require.NoError(t, cluster.Keep(last, nil))
		require.Equal(t, 2, r.Stats().KeptAlive)
		time.Sleep(3 * brief)
		require.NoError(t, ctx.Err())
		require.Positive(t, last.Remaining())
		require.NoError(t, last.Release(t.Context()))
		require.Positive(t, r.Stats().Extend.Won)
		r.Servers[6:8].Del(keys[2])
		testkit.Get(t, ctx.Done())
		require.Equal(t, redlock.ErrNotHeld, context.Cause(ctx))
		require.Zero(t, l.Remaining())
		cluster.AwaitHooks(t, r.Client)
		require.Equal(t, []string{fmt.Sprint(l.Key(), ": ", redlock.ErrNotHeld)}, cluster.Take(&y, &y.Lost))
		require.EqualValues(t, 1, r.Stats().Lost)
		require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()))
		r.AwaitEmpty(t)
		require.Zero(t, cluster.Settle(t, r.Client).Held)
	})
}

// TestSetInGroupsIsAllOrNothing: the groups are asked in turn, so the first to refuse is the last
// asked, and earlier acquires are released. A group known to have no quorum is the first: no key is held in vain.
func TestSetInGroupsIsAllOrNothing(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(*testing.T, *cluster.Cluster, string)
		err  error
	}{
		"taken": {func(_ *testing.T, r *cluster.Cluster, key string) { r.Servers[3:6].Take(key) }, redlock.ErrTaken},
		"down": {func(t *testing.T, r *cluster.Cluster, _ string) {
			r.Servers[3:5].Down()
			cluster.AwaitNodesUp(t, r.Client, 7)
		}, redlock.ErrNoQuorum},
		"known to be down": {func(t *testing.T, r *cluster.Cluster, key string) {
			r.Servers[3:5].Down()
			cluster.AwaitNodesUp(t, r.Client, 7)
			require.ErrorIs(t, errorOf(r.TryAcquire(t.Context(), key, ttl)), redlock.ErrNoQuorum)
		}, redlock.ErrNoQuorum},
		"silent": {func(_ *testing.T, r *cluster.Cluster, _ string) { r.Servers[3:5].Mute() }, context.DeadlineExceeded},
	} {
		cluster.Run(t, name, func(t *testing.T) {
			r := cluster.New(t, 9, cluster.InGroups(3))
			keys := keysOf(3)
			c.harm(t, r, keys[1])
			ctx := testkit.Limited(t, time.Second)
			_, err := r.TryAcquireAll(ctx, ttl, keys...)
			require.ErrorIs(t, err, c.err)
			if c.err == redlock.ErrNoQuorum {
				lacks := testkit.As[*redlock.QuorumError](t, err)
				require.Equal(t, []int{3, 3}, []int{lacks.Nodes, lacks.Failed[0].Node}, "numbered through all groups")
			}
			r.Heal(t)
			requireOnlyAnothers(t, r)
			s := cluster.Settle(t, r.Client)
			require.Zero(t, s.Held)
			require.Zero(t, s.Acquire.Won)
			for i, rec := range r.Recorders {
				require.Len(t, rec.Calls("SET", keys[0]), map[bool]int{true: 1}[i < 3 && name != "known to be down"])
				require.Empty(t, rec.Calls("SET", keys[2]), "a group after the one that refuses")
			}
		})
	}
}

// TestReadyInGroups: the error shows the groups without a quorum. Keys of the others can be locked. A group that is lost while
// Ready waits for another is waited for again.
func TestReadyInGroups(t *testing.T) {
	cluster.On(t, 9, func(t *testing.T, r *cluster.Cluster) {
		keys := keysOf(3)
		for _, i := range []int{3, 4, 7} {
			r.Servers[i].Down()
		}
		cluster.AwaitNodesUp(t, r.Client, 6)
		ctx := testkit.Limited(t, time.Second)
		err := r.Ready(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.ErrorContains(t, err, "the keys of 1 of 3 groups cannot be locked: Groups[1]: no quorum (2 of 3 nodes failed: "+r.Servers[3].Addr())
		require.Equal(t, 1, strings.Count(err.Error(), "redlock: "))
		lacks := testkit.As[*redlock.QuorumError](t, err)
		require.Equal(t, []int{3, 4}, []int{lacks.Failed[0].Node, lacks.Failed[1].Node})
		require.ErrorIs(t, errorOf(r.TryAcquire(t.Context(), keys[1], ttl)), redlock.ErrNoQuorum)
		for _, key := range []string{keys[0], keys[2]} {
			require.NoError(t, cluster.MustAcquire(t, r.Client, key, ttl).Release(t.Context()))
		}
		ready := testkit.Start(func() error { return r.Ready(t.Context()) })
		r.Heal(t)
		require.NoError(t, testkit.Outcome(t, "Ready", ready))

		cluster.AwaitNodesUp(t, r.Client, 9)
		r.Servers[7:].Down()
		cluster.AwaitNodesUp(t, r.Client, 7)
		ready = testkit.Start(func() error { return r.Ready(testkit.Limited(t, 20*time.Second)) })
		time.Sleep(time.Second)
		r.Servers[:2].Down()
		cluster.AwaitNodesUp(t, r.Client, 5)
		require.NoError(t, r.Servers[7:].Heal())
		require.Error(t, testkit.Get(t, ready), "the first group, ready before, has one node")

		r.Heal(t)
		require.NoError(t, r.Ready(t.Context()))
	}, cluster.InGroups(3))
}

// TestFencedSetInGroups: a lock in several groups has one fencing token, larger than every earlier
// one for any of its keys, though the groups know of different ones.
func TestFencedSetInGroups(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		nodes := fakeredis.Addrs(cluster.Start(t, 6))
		connect := func(off time.Duration) *redlock.Client {
			return cluster.Connect(t, nodes, cluster.InGroups(3), fenced(off))
		}
		c, closed := connect(0), connect(0)
		require.ErrorIs(t, c.InitFencing(ended(t)), context.Canceled)
		call := testkit.Start(func() error { return closed.InitFencing(t.Context()) })
		require.NoError(t, closed.Close())
		require.ErrorIs(t, testkit.Outcome(t, "InitFencing", call), redlock.ErrClosed)
		start := time.Now()
		require.NoError(t, c.InitFencing(t.Context()))
		require.Less(t, time.Since(start), 2*fenceTTL, "the groups wait for MaxTTL at the same time")
		keys, ahead := keysOf(2), connect(time.Hour)
		for _, key := range keys { // the second group refuses, then the first too
			first := cluster.MustAcquire(t, ahead, key, fenceTTL)
			require.NoError(t, first.Release(t.Context()))
			l := testkit.Must(c.TryAcquireAll(t.Context(), fenceTTL, keys...))(t)
			require.Greater(t, l.Fence(), first.Fence())
			require.NoError(t, l.Release(t.Context()))
			for _, key := range keys {
				next := cluster.MustAcquire(t, c, key, fenceTTL)
				require.Greater(t, next.Fence(), l.Fence())
				require.NoError(t, next.Release(t.Context()))
			}
		}
	})
}

// ended is an ended context.
func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
