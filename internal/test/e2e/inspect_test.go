package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// foreign is a value as other clients write it, of 24 characters.
const foreign = "q83vEjRWeJCrze8SNFZ4kA=="

func holder(text string) func(*redlock.Config) { return func(cfg *redlock.Config) { cfg.Name = text } }

// TestInspect: each node's value at a key, and the verdict of all.
func TestInspect(t *testing.T) {
	type steps = []func(*cluster.Cluster)
	of := func(nodes []int, f func(*fakeredis.Server)) func(*cluster.Cluster) {
		return func(r *cluster.Cluster) {
			for _, i := range nodes {
				f(r.Servers[i])
			}
		}
	}
	set := func(value string, ttl time.Duration, nodes ...int) func(*cluster.Cluster) {
		return of(nodes, func(s *fakeredis.Server) { s.Set("k", value, ttl) })
	}
	down := func(nodes ...int) func(*cluster.Cluster) {
		return func(r *cluster.Cluster) {
			of(nodes, (*fakeredis.Server).Down)(r)
			cluster.AwaitNodesUp(t, r.Client, 5-len(nodes))
		}
	}
	mute := func(nodes ...int) func(*cluster.Cluster) { return of(nodes, (*fakeredis.Server).Mute) }
	all := []int{0, 1, 2, 3, 4}
	for name, c := range map[string]struct {
		prepare steps
		verdict redlock.KeyStatus
		text    string
		keys    int // nodes with the key
		failed  int // nodes that have shown nothing
	}{
		"nothing":              {nil, redlock.KeyFree, "free", 0, 0},
		"held":                 {steps{set(foreign, ttl, all...)}, redlock.KeyHeld, "held", 5, 0},
		"held by a quorum":     {steps{set(foreign, ttl, 0, 2, 4)}, redlock.KeyHeld, "held", 3, 0},
		"left by a minority":   {steps{set(foreign, ttl, 0, 4)}, redlock.KeyFree, "free", 2, 0},
		"without a TTL":        {steps{set("1", 0, all...)}, redlock.KeyEternal, "held without a TTL", 5, 0},
		"a minority eternal":   {steps{set("1", 0, 0, 1)}, redlock.KeyFree, "free", 2, 0},
		"an empty value":       {steps{set("", ttl, all...)}, redlock.KeyHeld, "held", 5, 0},
		"an empty one, no TTL": {steps{set("", 0, 0, 1, 2, 3)}, redlock.KeyEternal, "held without a TTL", 4, 0},
		"split":                {steps{set("a", ttl, 0, 1), set("b", ttl, 2, 3)}, redlock.KeySplit, "split", 4, 0},
		"two down":             {steps{set(foreign, ttl, 0, 1, 2), down(3, 4)}, redlock.KeyHeld, "held", 3, 2},
		"three down":           {steps{set(foreign, ttl, 0, 1), down(2, 3, 4)}, redlock.KeyUnknown, "unknown", 2, 3},
		"three silent":         {steps{mute(2, 3, 4)}, redlock.KeyUnknown, "unknown", 0, 3},
		"two silent":           {steps{mute(3, 4)}, redlock.KeyFree, "free", 0, 2},
		"one down, two silent": {steps{down(0), mute(3, 4)}, redlock.KeyUnknown, "unknown", 0, 3},
		"one slow":             {steps{set(foreign, ttl, all...), of([]int{4}, func(s *fakeredis.Server) { s.Delay(50 * time.Millisecond) })}, redlock.KeyHeld, "held", 5, 0},
		"a list":               {steps{of(all, func(s *fakeredis.Server) { s.Plant("k", "list") })}, redlock.KeyUnknown, "unknown", 0, 5},
	} {
		cluster.Run(t, name, func(t *testing.T) {
			r := cluster.New(t, 5, cluster.NodeTimeout(500*time.Millisecond))
			for _, step := range c.prepare {
				step(r)
			}
			s := testkit.Must(r.Inspect(t.Context(), "k"))(t)
			require.Equal(t, c.verdict, s.Status)
			require.Equal(t, c.text, s.Status.String())
			require.Equal(t, "k", s.Key)
			require.Equal(t, c.keys > 0, s.Digest != "")
			require.Len(t, s.Nodes, 5)
			keys, failed := 0, 0
			for i, n := range s.Nodes {
				require.Equal(t, i, n.Node)
				require.Equal(t, r.Servers[i].Addr(), n.Addr)
				if n.Err != nil {
					failed++
				}
				if n.Digest == "" {
					require.Zero(t, n.TTL)
					require.False(t, n.NoTTL)
					continue
				}
				keys++
				require.NoError(t, n.Err)
				require.Equal(t, r.Servers[i].TTL("k") == fakeredis.NoTTL, n.NoTTL)
				require.Equal(t, !n.NoTTL, n.TTL > 0 && n.TTL <= ttl)
			}
			require.Equal(t, c.keys, keys)
			require.Equal(t, c.failed, failed)
			if name == "a list" {
				require.ErrorContains(t, s.Nodes[0].Err, "WRONGTYPE")
			}
			r.Heal(t)
			r.AwaitUp(t)
		})
	}
}

// TestInspectShowsWho holds a lock, and no holder where a value is not of this library. That no state shows a value see
// TestNoTypeShowsASecret.
func TestInspectShowsWho(t *testing.T) {
	r := cluster.New(t, 3, holder("host-1:42"))
	other := cluster.Connect(t, fakeredis.Addrs(r.Servers), holder("worker@host"))
	l := cluster.MustAcquire(t, r.Client, "k", ttl)
	r.AwaitHolders(t, 3, "k")
	s := testkit.Must(other.Inspect(t.Context(), "k"))(t)
	require.Equal(t, "host-1:42", s.Holder)
	require.True(t, s.IsHeldBy(l))
	require.False(t, s.IsHeldBy(redlock.Lock{}))
	theirs := cluster.MustAcquire(t, other, "theirs", ttl)
	require.False(t, s.IsHeldBy(theirs))
	r.AwaitHolders(t, 3, "theirs")
	var none context.Context // has no end
	u := testkit.Must(r.Inspect(none, "theirs"))(t)
	require.Equal(t, "worker@host", u.Holder)
	require.NotEqual(t, s.Digest, u.Digest)
	for _, n := range u.Nodes {
		require.Equal(t, u.Digest, n.Digest)
		require.Equal(t, "worker@host", n.Holder)
	}
	free := testkit.Must(r.Inspect(t.Context(), "free"))(t)
	require.False(t, free.IsHeldBy(redlock.Lock{}) || free.IsHeldBy(l))
	require.Equal(t, l.Token(), s.Token())
	require.Empty(t, free.Token())
	require.InDelta(t, ttl.Seconds(), u.TTL.Seconds(), 30)

	huge := strings.Repeat(foreign, 1<<20/len(foreign))
	for key, value := range map[string]string{"foreign": foreign, "huge": huge, "spoof": l.Token()[:22] + "@\x1b[2J", "long": l.Token()[:22] + "@" + strings.Repeat("x", 500)} {
		r.Servers.Each(func(server *fakeredis.Server) { server.Set(key, value, ttl) })
		f := testkit.Must(r.Inspect(t.Context(), key))(t)
		require.Equal(t, redlock.KeyHeld, f.Status)
		if key != "long" {
			require.Empty(t, f.Holder, "any of it may be a secret, or harm a terminal")
		}
	}
	require.Contains(t, fmt.Sprint(s), s.Digest)
	require.Contains(t, fmt.Sprint(s), "host-1:42")
	for _, n := range cluster.Stats(t, r.Client).Nodes {
		require.EqualValues(t, 1, n.Connects, "1 MB is not read over it")
	}
}

// TestAttach: a lock acquired elsewhere is one here, if a quorum shows it, for as long as its user
// and a quorum of nodes say. It is extended, kept alive and released with its own value.
func TestAttach(t *testing.T) {
	for _, flavor := range []fakeredis.Flavor{fakeredis.Redis7, fakeredis.Valkey9, fakeredis.Redis84} {
		cluster.Run(t, flavor.String(), func(t *testing.T) {
			r := cluster.Of(t, cluster.Start(t, 5, fakeredis.Options{Flavor: flavor}), holder("me"))
			place := func(value string, ttls ...time.Duration) {
				r.AwaitEmpty(t)
				for i, d := range ttls {
					r.Servers[i].Set("k", value, d)
				}
			}
			for _, value := range []string{"1", foreign, foreign[:22], "0c0e4b7a-7f6c-4b1f-9d38-8a2f6c1f1d55", strings.Repeat("y", 256)} {
				place(value, 5*time.Second, 3*time.Second, time.Second, 4*time.Second)
				l := testkit.Must(r.Attach(t.Context(), "k", value, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)))(t) // the nodes are the bound
				require.Equal(t, value, l.Token())
				require.Equal(t, 1, r.Stats().Held)
				require.Less(t, l.Remaining(), 3*time.Second-cluster.Drift(3*time.Second)+time.Millisecond, "a quorum has it until then")
				require.Greater(t, l.Remaining(), time.Second)
				require.NoError(t, l.Extend(t.Context(), ttl))
				require.Greater(t, l.Remaining(), ttl/2)
				cluster.Settle(t, r.Client)
				require.Greater(t, r.Servers[3].TTL("k"), ttl/2)
				require.NoError(t, l.Release(t.Context()))
			}
			// Kept alive with its remaining TTL.
			place(foreign, brief, brief, brief, brief, brief)
			l := testkit.Must(r.Attach(t.Context(), "k", foreign, time.Now().Add(time.Hour)))(t)
			ctx, stop := l.KeepAlive(t.Context())
			defer stop()
			time.Sleep(2 * brief)
			require.NoError(t, context.Cause(ctx))
			r.Servers.Each(func(s *fakeredis.Server) { require.LessOrEqual(t, s.TTL("k"), brief) })
			require.NoError(t, l.Release(t.Context()))

			// The user's bound.
			place(foreign, ttl, ttl, ttl, ttl, ttl)
			l = testkit.Must(r.Attach(t.Context(), "k", foreign, time.Now().Add(brief)))(t)
			require.LessOrEqual(t, l.Remaining(), brief)
			testkit.Await(t, "the end", func() bool { return l.Remaining() == 0 })
			require.Equal(t, redlock.ErrExpired, l.Extend(t.Context(), ttl))
			l.ReleaseAsync()

			// Too few nodes have it.
			attach := func() error { return errorOf(r.Attach(t.Context(), "k", foreign, time.Now().Add(ttl))) }
			for name, ttls := range map[string][]time.Duration{"none": nil, "a minority": {ttl, ttl}, "no TTL": {0, 0, 0, 0, 0}} {
				place(foreign, ttls...)
				require.Equal(t, redlock.ErrNotHeld, attach(), name)
				r.Servers.Flush()
			}
			place(foreign, ttl, ttl, time.Millisecond, time.Millisecond, time.Millisecond)
			require.True(t, testkit.IsAny(attach(), redlock.ErrExpired, redlock.ErrNotHeld))
			r.Servers.Flush()
			place("another's value, not ours", ttl, ttl, ttl)
			require.Equal(t, redlock.ErrNotHeld, attach())

			r.Servers.Each(func(s *fakeredis.Server) { s.Set("k", foreign, ttl) })
			r.Servers[:3].Down()
			cluster.AwaitNodesUp(t, r.Client, 2)
			err := attach()
			quorum := testkit.As[*redlock.QuorumError](t, err)
			require.Equal(t, 2, quorum.Granted)
			require.Len(t, quorum.Failed, 3)
			require.NotContains(t, fmt.Sprint(err), foreign)
		})
	}
}
