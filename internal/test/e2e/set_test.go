package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestSet: several keys are one lock, acquired in one batch in the order of their bytes,
// extended, kept alive and released as one.
func TestSet(t *testing.T) {
	for _, flavor := range []fakeredis.Flavor{fakeredis.Redis7, fakeredis.Valkey9, fakeredis.Redis84} {
		testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
			r := cluster.Of(t, cluster.Start(t, 3, fakeredis.Options{Flavor: flavor}), cluster.Portable(portable))
			var sorted []string
			for i := range 64 {
				sorted = append(sorted, fmt.Sprintf("k%02d", i))
			}
			keys := slices.Clone(sorted)
			rand.Shuffle(64, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
			given := slices.Clone(keys)
			before := cluster.Settle(t, r.Client)
			l := testkit.Must(r.AcquireAll(t.Context(), ttl, keys...))(t)
			require.Equal(t, given, keys, "the caller's order is the caller's")
			require.Equal(t, sorted, l.Keys())
			require.Equal(t, sorted[0], l.Key())
			after := cluster.Settle(t, r.Client)
			require.EqualValues(t, 1, after.Batches-before.Batches)
			require.EqualValues(t, 64, after.Operations-before.Operations)
			require.Equal(t, cluster.Results{Won: 1}, after.Acquire, "one lock")
			require.Equal(t, 1, after.Held)
			for i, s := range r.Servers {
				var written []string
				for _, c := range r.Recorders[i].Calls("SET", "NX") {
					written = append(written, c.Args[1])
				}
				require.Equal(t, sorted, written)
				for _, key := range keys {
					value, _ := s.Get(key)
					require.Equal(t, l.Token(), value)
				}
			}
			require.Equal(t, redlock.ErrTaken, errorOf(r.TryAcquire(t.Context(), keys[17], ttl)))

			require.NoError(t, l.Extend(t.Context(), 2*ttl))
			if round := cluster.Settle(t, r.Client); portable {
				require.NoError(t, l.Release(t.Context()))
				require.EqualValues(t, 1, cluster.Settle(t, r.Client).Batches-round.Batches)
			} else {
				l.ReleaseAsync()
				l.ReleaseAsync()
			}
			r.AwaitEmpty(t)
		})
	}
}

// TestSetIsAllOrNothing: an attempt that fails, at any moment and for any reason, leaves no key on
// any node and counts as no lock.
func TestSetIsAllOrNothing(t *testing.T) {
	keys := []string{"a", "b", "c", "d", "e"}
	for name, c := range map[string]struct {
		harm func(*testing.T, *cluster.Cluster)
		err  error
	}{
		"one taken": {func(_ *testing.T, r *cluster.Cluster) { r.Servers[:3].Take("c") }, redlock.ErrTaken},
		"one alone with a quorum": {func(t *testing.T, r *cluster.Cluster) {
			r.Servers[:3].Each(func(s *fakeredis.Server) { s.ErrorReply("SET", "OOM command not allowed", 4) })
		}, redlock.ErrNoQuorum},
		"nodes down": {func(t *testing.T, r *cluster.Cluster) {
			r.Servers[:3].Down()
			cluster.AwaitNodesUp(t, r.Client, 2)
		}, redlock.ErrNoQuorum},
		"too late": {func(_ *testing.T, r *cluster.Cluster) { r.Servers.Delay(30 * time.Millisecond) }, redlock.ErrExpired},
	} {
		cluster.Run(t, name, func(t *testing.T) {
			r := cluster.New(t, 5)
			c.harm(t, r)
			d := ttl
			if c.err == redlock.ErrExpired {
				d = 20 * time.Millisecond
			}
			_, err := r.TryAcquireAll(t.Context(), d, keys...)
			require.ErrorIs(t, err, c.err)
			r.Heal(t)
			requireOnlyAnothers(t, r)
			stats := cluster.Settle(t, r.Client)
			require.Zero(t, stats.Held)
			require.Zero(t, stats.Acquire.Won)
		})
	}
	cluster.Run(t, "the context panics", func(t *testing.T) {
		r := cluster.New(t, 3)
		parent, cancel := context.WithCancel(t.Context())
		user := userContext{parent, in("Err", func() {
			if parent.Err() != nil {
				panic("user code")
			}
		})}
		r.Servers[:2].Mute()
		// Two keys are refused at once, one hangs: the context ends while some are decided.
		call := testkit.Start(func() error { _, err := r.TryAcquireAll(user, ttl, keys...); return err })
		testkit.Await(t, "sent", func() bool { return r.Holders("e") == 3 })
		cancel()
		require.ErrorContains(t, testkit.Outcome(t, "AcquireAll", call), "panic: user code")
		r.Heal(t)
		requireOnlyAnothers(t, r)
	})
}

// requireOnlyAnothers waits until no key of ours is on any node.
func requireOnlyAnothers(t *testing.T, r *cluster.Cluster) {
	t.Helper()
	testkit.Await(t, "nothing of ours", func() bool {
		for _, s := range r.Servers {
			for _, key := range s.Keys() {
				if value, ok := s.Get(key); ok && value != "another's" {
					return false
				}
			}
		}
		return true
	})
}

// TestTryAcquireAny: each permit is had once, by one round trip for each; one look finds a free one, and none is taken to
// be given back. Clients begin at different keys.
func TestTryAcquireAny(t *testing.T) {
	const n = 8
	r := cluster.Of(t, cluster.Start(t, 5))
	keys := redlock.Permits("pool", n)
	held := map[string]redlock.Lock{}
	for i := range n {
		before := cluster.Settle(t, r.Client)
		l := testkit.Must(r.TryAcquireAny(t.Context(), ttl, keys...))(t)
		require.Contains(t, keys, l.Key())
		require.NotContains(t, held, l.Key())
		held[l.Key()] = l
		after := cluster.Settle(t, r.Client)
		require.EqualValues(t, 1, after.Batches-before.Batches, "each call begins one further: %d", i)
		require.Zero(t, after.Cleanups)
	}
	other := cluster.Connect(t, fakeredis.Addrs(r.Servers))
	before := cluster.Settle(t, other)
	require.Equal(t, redlock.ErrTaken, errorOf(other.TryAcquireAny(t.Context(), ttl, keys...)))
	after := cluster.Settle(t, other)
	require.EqualValues(t, 2, after.Batches-before.Batches, "one is asked for, and all others are looked at")
	require.EqualValues(t, 1, after.Acquire.Denied)

	require.NoError(t, held[keys[3]].Release(t.Context()))
	before = cluster.Settle(t, other)
	l := testkit.Must(other.TryAcquireAny(t.Context(), ttl, keys...))(t)
	require.Equal(t, keys[3], l.Key())
	require.LessOrEqual(t, cluster.Settle(t, other).Batches-before.Batches, uint64(3))
	s := testkit.Must(r.Inspect(t.Context(), keys[3]))(t)
	require.True(t, s.IsHeldBy(l))
	r.Servers.Each(func(s *fakeredis.Server) { s.Deny("EXISTS") }) // one key is tried after another
	require.NoError(t, held[keys[5]].Release(t.Context()))
	require.Equal(t, keys[5], testkit.Must(other.TryAcquireAny(t.Context(), ttl, keys...))(t).Key())
	r.Servers.Each(func(s *fakeredis.Server) { s.Allow("EXISTS") })
	ctx, stop := l.KeepAlive(t.Context())
	defer stop()
	require.NoError(t, ctx.Err())

	first := map[string]bool{}
	for range n {
		l := testkit.Must(cluster.Connect(t, fakeredis.Addrs(r.Servers)).TryAcquireAny(t.Context(), ttl, redlock.Permits("other", n)...))(t)
		first[l.Key()] = true
		require.NoError(t, l.Release(t.Context()))
	}
	require.Greater(t, len(first), 1)
}

// TestASplitKeyOfATakenSet has no holder that was seen: it is asked for again, by this caller and by others.
func TestASplitKeyOfATakenSet(t *testing.T) {
	cluster.On(t, 3, func(t *testing.T, r *cluster.Cluster) {
		r.Servers.Take("taken")
		r.Servers[1:].Each(func(s *fakeredis.Server) { s.Set("split", foreign, time.Hour) })
		ctx, cancel := context.WithCancel(t.Context())
		all := testkit.Start(func() error { _, err := r.AcquireAll(ctx, ttl, "split", "taken"); return err })
		testkit.Await(t, "a wait", func() bool { return r.Stats().Acquire.Denied > 0 })
		time.Sleep(10 * time.Millisecond)
		r.Servers.Del("split")
		require.NoError(t, errorOf(r.TryAcquire(t.Context(), "split", ttl)))
		cancel()
		require.ErrorIs(t, testkit.Get(t, all), context.Canceled)
	})
}

// TestCollectedOfAContest: a set that takes its keys one by one may have one from the winner of a contest. The key stays
// for those who have lost, as where any other caller has the lock next.
func TestCollectedOfAContest(t *testing.T) {
	cluster.On(t, 3, func(t *testing.T, r *cluster.Cluster) {
		const ms, stays = time.Millisecond, 50 * time.Millisecond
		r.Servers.Take("a")
		began := time.Now()
		all := testkit.Start(func() error {
			l, err := r.AcquireAll(t.Context(), ttl, "a", "b")
			if err != nil {
				return err
			}
			return l.Release(t.Context())
		})
		for i := 0; time.Since(began) < 1900*ms; i++ { // it has each in turn, and never both
			time.Sleep(150 * ms)
			free, taken := "b", "a"
			if i%2 == 0 {
				free, taken = taken, free
			}
			r.Servers.Take(taken)
			r.Servers.Del(free)
		}
		time.Sleep(20 * ms)
		r.Servers.Take("a")
		r.Servers.Del("b")
		time.Sleep(2500*ms - time.Since(began)) // it collects, and waits for the first
		r.Servers[2].Set("b", foreign, 20*ms)
		var granted time.Time
		require.NoError(t, r.TryDo(t.Context(), "b", ttl, func(context.Context) error {
			granted = time.Now()
			r.Servers.Del("a")
			testkit.Await(t, "the first is collected", func() bool { return r.Stats().KeptAlive == 2 })
			time.Sleep(5 * ms)
			return nil
		}))
		for time.Since(granted) < stays-ms {
			require.GreaterOrEqual(t, r.Holders("b"), 2, time.Since(granted))
			time.Sleep(ms)
		}
		require.NoError(t, testkit.Get(t, all))
	})
}
