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
	"github.com/redlock-go/redlock/internal/wire/command"
)

// TestRollingRestart: locks kept alive outlive the restart of all nodes, empty, each when the one before it votes again:
// locks of one key and of several, attached ones, and those of a client with a name; fenced ones, whose tokens grow; and
// shared ones, which a node gets back past a gate. No key is there for longer than the validity.
func TestRollingRestart(t *testing.T) {
	const ttl = 5 * brief
	kinds := map[string]func(t *testing.T, r *cluster.Cluster) []redlock.Lock{
		"one": func(t *testing.T, r *cluster.Cluster) []redlock.Lock {
			return []redlock.Lock{cluster.MustAcquire(t, r.Client, "k", ttl)}
		},
		"many": func(t *testing.T, r *cluster.Cluster) (locks []redlock.Lock) {
			for i := range 20 {
				locks = append(locks, cluster.MustAcquire(t, r.Client, fmt.Sprint("k", i), ttl))
			}
			several := testkit.Must(r.AcquireAll(t.Context(), ttl, "a", "b"))(t)
			theirs := cluster.MustAcquire(t, cluster.Connect(t, fakeredis.Addrs(r.Servers)), "theirs", ttl)
			attached := testkit.Must(r.Attach(t.Context(), "theirs", theirs.Token(), time.Now().Add(ttl)))(t)
			return append(locks, several, attached)
		},
		"shared": func(t *testing.T, r *cluster.Cluster) (locks []redlock.Lock) {
			for range 5 {
				locks = append(locks, mustShare(t, r.Client, "k", ttl))
			}
			return locks
		},
	}
	for _, c := range []struct {
		kind   string
		fenced bool
	}{{"many", false}, {"one", true}, {"shared", false}, {"shared", true}} {
		cluster.Run(t, fmt.Sprint(c.kind, ", fenced ", c.fenced), func(t *testing.T) {
			r := cluster.New(t, 3, cluster.DefaultTimeouts, cluster.NodeTimeout(brief), func(cfg *redlock.Config) {
				if cfg.Name = "us"; c.fenced {
					fenced(0)(cfg)
					cfg.MaxTTL = ttl
				}
			})
			if c.fenced {
				require.NoError(t, r.InitFencing(t.Context()))
			}
			locks := kinds[c.kind](t, r)
			var kept []context.Context
			for _, l := range locks {
				ctx, stop := l.KeepAlive(t.Context())
				defer stop()
				kept = append(kept, ctx)
			}
			for i, s := range r.Servers {
				before := r.Stats().Nodes[i].Connects
				require.NoError(t, s.Restart(true))
				if c.kind == "shared" {
					s.Set("k:redlock:gate", "a writer's", time.Minute)
				}
				testkit.Await(t, "its vote", func() bool {
					n := r.Stats().Nodes[i]
					return n.Connects > before && n.NoVote == nil
				})
				for _, l := range locks {
					for _, key := range l.Keys() {
						testkit.Await(t, key+" on it", func() bool {
							value, _ := s.Get(key)
							holders, _ := s.Holders(key)
							return value == l.Token() || holders[l.Token()] > 0
						})
						require.LessOrEqual(t, s.TTL(key), ttl)
					}
				}
				s.Del("k:redlock:gate")
			}
			for i, l := range locks {
				require.NoError(t, context.Cause(kept[i]), l.Key())
				require.NoError(t, l.Release(t.Context()))
			}
			require.Zero(t, cluster.Stats(t, r.Client).Lost)
			for _, l := range locks {
				r.AwaitHolders(t, 0, l.Key())
			}
			if c.kind == "one" {
				require.Greater(t, cluster.MustAcquire(t, r.Client, "k", ttl).Fence(), locks[0].Fence())
			}
		})
	}
}

// lateAnswer has the last master answer extends when the gate is opened, and has taken the key of a lock from it.
func lateAnswer(r *cluster.Cluster, key string) (s *fakeredis.Server, open func()) {
	gate := make(chan struct{})
	s = r.Servers[len(r.Servers)-1]
	s.Del(key)
	s.OnCommand(func(_ int64, args []string) {
		if args[0] == "EVALSHA" && args[1] == command.ExtendSHA1 {
			<-gate
		}
	})
	return s, func() { close(gate) }
}

// TestLateRepair: a node that answers when the extension has long been won is repaired, for the
// rest of the validity, and so is one that answers before it is won.
func TestLateRepair(t *testing.T) {
	cluster.On(t, 5, func(t *testing.T, r *cluster.Cluster) {
		l := cluster.MustAcquire(t, r.Client, "k", ttl)
		r.AwaitHolders(t, 5, "k")
		s, open := lateAnswer(r, "k")
		require.NoError(t, l.Extend(t.Context(), ttl))
		time.Sleep(50 * time.Millisecond)
		open()
		r.AwaitHolders(t, 5, "k")
		require.LessOrEqual(t, s.TTL("k"), ttl-cluster.Drift(ttl)-50*time.Millisecond)
		require.Greater(t, s.TTL("k"), ttl/2)

		r.Servers[0].Del("k")
		r.Servers[1:].Delay(20 * time.Millisecond)
		require.NoError(t, l.Extend(t.Context(), ttl))
		r.AwaitHolders(t, 5, "k")
		require.NoError(t, l.Release(t.Context()))
		r.AwaitEmpty(t)
	})
}

// TestNoRepairBehindRelease: a node that answers after the call of the release, or after the end of
// validity, is not given the key, also where another lock has taken the lease.
func TestNoRepairBehindRelease(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		for name, end := range map[string]func(*cluster.Cluster, redlock.Lock){
			"released": func(r *cluster.Cluster, l redlock.Lock) {
				l.ReleaseAsync()
				testkit.Await(t, "the release", func() bool { return len(r.Recorders[0].Calls("EVALSHA", command.ReleaseSHA1)) > 0 })
				cluster.MustAcquire(t, r.Client, "other", ttl)
			},
			"about to be released": func(r *cluster.Cluster, l redlock.Lock) {
				r.Servers[:2].Mute()
				go func() { _ = l.Release(context.Background()) }()
				testkit.Await(t, "the release", func() bool { return len(r.Recorders[0].Calls("EVALSHA", command.ReleaseSHA1)) > 0 })
			},
			"over": func(_ *cluster.Cluster, l redlock.Lock) {
				testkit.Await(t, "the end", func() bool { return l.Remaining() == 0 })
			},
		} {
			r := cluster.New(t, 3)
			l := cluster.MustAcquire(t, r.Client, "k", brief)
			r.AwaitHolders(t, 3, "k")
			s, open := lateAnswer(r, "k")
			require.NoError(t, l.Extend(t.Context(), brief))
			end(r, l)
			open()
			testkit.Await(t, "its answers", func() bool { return cluster.Stats(t, r.Client).Nodes[2].InFlight == 0 })
			r.Heal(t)
			cluster.Settle(t, r.Client)
			require.EqualValues(t, 1+r.Holders("other")/3, s.Count("SET"), name)
			_ = l.Release(t.Context())
			r.AwaitHolders(t, 0, "k")
		}
	})
}

// TestRepairIsReleased: a node that missed the key, and was repaired since, is released too, though it is away then.
func TestRepairIsReleased(t *testing.T) {
	cluster.On(t, 3, func(t *testing.T, r *cluster.Cluster) {
		r.Servers[2].Down()
		cluster.AwaitNodesUp(t, r.Client, 2)
		l := cluster.MustAcquire(t, r.Client, "k", ttl)
		require.NoError(t, r.Servers[2].Heal())
		cluster.AwaitNodesUp(t, r.Client, 3)
		require.NoError(t, l.Extend(t.Context(), ttl))
		r.AwaitHolders(t, 3, "k")
		r.Servers[2].Down()
		cluster.AwaitNodesUp(t, r.Client, 2)
		require.NoError(t, l.Release(t.Context()))
		require.NoError(t, r.Servers[2].Heal())
		r.AwaitEmpty(t)
	}, cluster.DefaultTimeouts)
}

// TestRepairKeepsOthers: the key of another holder is left as it is, and a node that refuses its
// repair loses no more than this.
func TestRepairKeepsOthers(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r, l := heldEverywhere(t)
		r.Servers[0].Set("k", "another's", ttl)
		r.Servers[1].ErrorReply("SET", "OOM command not allowed", 1)
		for range 3 {
			require.NoError(t, l.Extend(t.Context(), ttl))
			cluster.Settle(t, r.Client)
		}
		require.EqualValues(t, 1+3*4, r.Servers[0].Count("SET"), "four times by each extend")
		value, _ := r.Servers[0].Get("k")
		require.Equal(t, "another's", value)

		r.Servers[0].Set("k", l.Token(), ttl)
		r.Servers[1].Del("k")
		require.NoError(t, l.Extend(t.Context(), ttl))
		cluster.Settle(t, r.Client)
		require.Equal(t, 2, r.Holders("k"), "refused")
		require.NoError(t, l.Extend(t.Context(), ttl))
		r.AwaitHolders(t, 3, "k")
		for _, n := range cluster.Settle(t, r.Client).Nodes {
			require.EqualValues(t, 1, n.Connects)
		}
	})
}
