package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// groupsFromTo has a client change from so many groups of three nodes to so many; next 0 is no change.
func groupsFromTo(servers fakeredis.Servers, now, next int) func(*redlock.Config) {
	nodes := fakeredis.Addrs(servers)
	return func(c *redlock.Config) {
		groups := slices.Collect(slices.Chunk(slices.Clone(nodes), 3))
		c.Nodes, c.Groups, c.NextGroups = nil, groups[:now], groups[:next]
	}
}

// movingKey returns a key of one group of two that moves to another of three, or stays there.
func movingKey(t *testing.T, from, to int) string {
	t.Helper()
	for i := range 1000 {
		if key := fmt.Sprint("key", i); client.Number(key, 2) == from && client.Number(key, 3) == to {
			return key
		}
	}
	require.Fail(t, "no such key")
	return ""
}

// TestWhereKeysAre: the nodes that each kind of call asks for a key: those of its group, and in a change those of both lists,
// or of both groups of a key that moves. It is one lock there. A node of both lists is one node: it is asked once, and Stats
// has it once.
func TestWhereKeysAre(t *testing.T) {
	stays, moves := movingKey(t, 1, 1), movingKey(t, 0, 2)
	for name, c := range map[string]struct {
		servers   int
		layout    func(fakeredis.Servers) func(*redlock.Config)
		on        map[string][]int
		now, next func(node int) bool // whether it is in Nodes, in NextNodes
		timed     uint64              // attempts for one key, of one group
	}{
		"two groups": {
			6, func(s fakeredis.Servers) func(*redlock.Config) { return groupsFromTo(s, 2, 0) },
			map[string][]int{stays: {3, 4, 5}, moves: {0, 1, 2}},
			func(int) bool { return true }, func(int) bool { return false }, 12,
		},
		"more groups": {
			9, func(s fakeredis.Servers) func(*redlock.Config) { return groupsFromTo(s, 2, 3) },
			map[string][]int{stays: {3, 4, 5}, moves: {0, 1, 2, 6, 7, 8}},
			func(i int) bool { return i < 6 }, func(int) bool { return true }, 6,
		},
		"fewer groups": {
			9, func(s fakeredis.Servers) func(*redlock.Config) { return groupsFromTo(s, 3, 2) },
			map[string][]int{stays: {3, 4, 5}, moves: {0, 1, 2, 6, 7, 8}},
			func(int) bool { return true }, func(i int) bool { return i < 6 }, 6,
		},
		"other nodes": {
			6, func(s fakeredis.Servers) func(*redlock.Config) { return fromTo(s, three, five) },
			map[string][]int{stays: {0, 1, 2, 3, 4, 5}, moves: {0, 1, 2, 3, 4, 5}},
			func(i int) bool { return i < 3 }, func(i int) bool { return i > 0 }, 12,
		},
	} {
		cluster.Run(t, name, func(t *testing.T) {
			var y cluster.HookRecorder
			servers := cluster.Start(t, c.servers)
			r := cluster.Of(t, servers, c.layout(servers), cluster.Listening(&y))
			require.NoError(t, r.Ready(t.Context()))
			requireOn := func(key string, want []int) {
				t.Helper()
				cluster.Settle(t, r.Client)
				var has []int
				for i, s := range servers {
					if _, ok := s.Get(key); ok {
						has = append(has, i)
					}
				}
				require.Equal(t, want, has)
			}
			for key, nodes := range c.on {
				for _, acquire := range []func() (redlock.Lock, error){
					func() (redlock.Lock, error) { return r.TryAcquire(t.Context(), key, ttl) },
					func() (redlock.Lock, error) { return r.Acquire(t.Context(), key, ttl) },
					func() (redlock.Lock, error) { return r.AcquireAll(t.Context(), ttl, key) },
				} {
					l := testkit.Must(acquire())(t)
					requireOn(key, nodes)
					require.Equal(t, []string{key}, l.Keys())
					require.Equal(t, 1, r.Stats().Held)
					require.NoError(t, l.Extend(t.Context(), 2*ttl))
					cluster.Settle(t, r.Client)
					for _, i := range nodes {
						require.Greater(t, servers[i].TTL(key), ttl)
					}
					state := testkit.Must(r.Inspect(t.Context(), key))(t)
					require.Equal(t, redlock.KeyHeld, state.Status)
					require.True(t, state.IsHeldBy(l))
					require.Len(t, state.Nodes, len(nodes))
					for at, i := range nodes {
						require.Equal(t, i, state.Nodes[at].Node)
						require.Equal(t, servers[i].Addr(), state.Nodes[at].Addr)
					}
					attached := testkit.Must(r.Attach(t.Context(), key, l.Token(), time.Now().Add(ttl)))(t)
					require.NoError(t, attached.Release(t.Context()))
					requireOn(key, nil)
					require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()))
				}
				state := testkit.Must(r.Inspect(t.Context(), key))(t)
				require.Equal(t, redlock.KeyFree, state.Status)

				require.NoError(t, r.Do(t.Context(), key, brief, func(ctx context.Context) error {
					requireOn(key, nodes)
					time.Sleep(3 * brief)
					return ctx.Err()
				}))
				requireOn(key, nil)
				op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte(key), TTL: ttl}
				for _, kind := range []redlock.OpKind{redlock.OpAcquire, redlock.OpExtend} {
					op.Kind = kind
					require.NoError(t, cluster.Submit(t, r.Client, op))
					requireOn(key, nodes)
					require.Positive(t, op.Remaining())
				}
				require.Equal(t, redlock.ErrTaken, cluster.Submit(t, r.Client, &redlock.Op{Kind: redlock.OpAcquire, Key: []byte(key), TTL: ttl}))
				require.NoError(t, submitAs(t, r.Client, op, redlock.OpRelease))
				requireOn(key, nil)
			}
			l := testkit.Must(r.AcquireAll(t.Context(), ttl, stays, moves))(t)
			require.ElementsMatch(t, []string{stays, moves}, l.Keys())
			requireOn(moves, c.on[moves])
			l.ReleaseAsync()
			r.AwaitEmpty(t)
			s := cluster.Settle(t, r.Client)
			require.EqualValues(t, 2*5+1, s.Acquire.Won, "each lock is one")
			require.EqualValues(t, 2, s.Acquire.Denied)
			require.EqualValues(t, 2*(3+1+1)+1, s.Release.Won)
			require.EqualValues(t, 2*3, s.Release.Denied)
			require.Zero(t, s.Held)
			require.Len(t, r.Recorders[4].Calls("SET", stays), 3+1+2+1, "asked once, and of its own nodes")
			timed := uint64(0)
			for _, n := range s.AcquireTimes.Counts {
				timed += n
			}
			require.Equal(t, c.timed, timed, "of all groups")
			cluster.AwaitHooks(t, r.Client)
			y.Mu.Lock()
			defer y.Mu.Unlock()
			require.Len(t, s.Nodes, c.servers)
			for i, n := range s.Nodes {
				require.Equal(t, i, n.Index)
				require.Equal(t, servers[i].Addr(), n.Addr)
				require.Equal(t, c.now(i), n.InNodes)
				require.Equal(t, c.next(i), n.InNextNodes)
				require.Equal(t, n.Granted > 0, y.Votes[i][0] > 0, "by its own number")
			}
			for _, n := range y.Nodes {
				require.Equal(t, servers[n.Index].Addr(), n.Addr)
			}
		})
	}
}

// TestNextGroupsAreAllOrNothing: where the second group of a key refuses, the first has nothing of
// it in the end, in each kind of call.
func TestNextGroupsAreAllOrNothing(t *testing.T) {
	key := movingKey(t, 1, 2)
	for name, c := range map[string]struct {
		first, harmed int // nodes
		harm          func(*fakeredis.Server)
		err           error
	}{
		"taken before": {3, 3, func(s *fakeredis.Server) { s.Set(key, "another's", 0) }, redlock.ErrTaken},
		"taken after":  {6, 3, func(s *fakeredis.Server) { s.Set(key, "another's", 0) }, redlock.ErrTaken},
		"down after":   {6, 2, (*fakeredis.Server).Down, redlock.ErrNoQuorum},
	} {
		cluster.Run(t, name, func(t *testing.T) {
			servers := cluster.Start(t, 9)
			r := cluster.Of(t, servers, groupsFromTo(servers, 2, 3))
			servers[c.first : c.first+c.harmed].Each(c.harm)
			if c.err == redlock.ErrNoQuorum {
				cluster.AwaitNodesUp(t, r.Client, 7)
				require.ErrorContains(t, r.Ready(ended(t)), "NextGroups[2]: ")
			}
			op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte(key), TTL: ttl}
			for _, acquire := range []func() error{
				func() error { return errorOf(r.TryAcquire(t.Context(), key, ttl)) },
				func() error { return cluster.Submit(t, r.Client, op) },
			} {
				err := acquire()
				require.ErrorIs(t, err, c.err)
				if c.err == redlock.ErrNoQuorum {
					lacks := testkit.As[*redlock.QuorumError](t, err)
					require.Equal(t, []int{3, c.first}, []int{lacks.Nodes, lacks.Failed[0].Node})
				}
				requireOnlyAnothers(t, r)
			}
			s := cluster.Settle(t, r.Client)
			require.Zero(t, s.Acquire.Won)
			require.EqualValues(t, 2, s.Acquire.Denied+s.Acquire.NoQuorum)
			for _, rec := range r.Recorders[6:] {
				require.LessOrEqual(t, len(rec.Calls("SET", key)), c.first-3, "none where the first group refuses")
			}
		})
	}
}

// TestOpsThatMove: a cancelled acquire leaves nothing in either group, whichever is asked at the
// moment; a lock lost in one group is not held, and is released in the other.
func TestOpsThatMove(t *testing.T) {
	key := movingKey(t, 0, 2)
	for _, waits := range []int{0, 6} { // the first of the silent nodes
		cluster.Run(t, fmt.Sprint(waits), func(t *testing.T) {
			servers := cluster.Start(t, 9)
			r := cluster.Of(t, servers, groupsFromTo(servers, 2, 3))
			servers[waits : waits+3].Hang()
			op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte(key), TTL: ttl, Done: func(*redlock.Op) { t.Error("it was cancelled") }}
			require.NoError(t, r.Submit(op))
			testkit.Await(t, "the group to be asked", func() bool { return r.Stats().Nodes[waits].InFlight > 0 })
			require.ErrorIs(t, r.Submit(op), redlock.ErrArgument, "it is under way")
			require.True(t, r.Cancel(op))
			require.False(t, r.Cancel(op))
			r.Heal(t)
			r.AwaitEmpty(t)
			require.EqualValues(t, 1, cluster.Settle(t, r.Client).Acquire.Cancelled)

			require.NoError(t, cluster.Submit(t, r.Client, op), "it can be used again")
			cluster.Settle(t, r.Client)
			servers[waits : waits+2].Del(key)
			require.Equal(t, redlock.ErrNotHeld, submitAs(t, r.Client, op, redlock.OpExtend))
			require.Equal(t, redlock.ErrNotHeld, submitAs(t, r.Client, op, redlock.OpRelease))
			r.AwaitEmpty(t)
			s := cluster.Settle(t, r.Client)
			require.Equal(t, []uint64{1, 1, 1}, []uint64{s.Acquire.Won, s.Extend.Denied, s.Release.Denied})
		})
	}
}

// TestInspectDuringAChangeOfGroups: a moving key is held, or free, if both of its groups show it.
func TestInspectDuringAChangeOfGroups(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		servers := cluster.Start(t, 9)
		key := movingKey(t, 0, 2)
		r := cluster.Of(t, servers, groupsFromTo(servers, 2, 3))
		status := func() redlock.KeyStatus {
			t.Helper()
			s := testkit.Must(r.Inspect(t.Context(), key))(t)
			require.Equal(t, s.Status == redlock.KeyHeld || s.Status == redlock.KeyEternal, s.Token() != "")
			return s.Status
		}
		require.Equal(t, redlock.KeyFree, status())
		old := cluster.Connect(t, nil, groupsFromTo(servers, 2, 0))
		l := cluster.MustAcquire(t, old, key, ttl)
		cluster.Settle(t, old)
		require.Equal(t, redlock.KeySplit, status(), "a client of the present groups has it")
		require.Equal(t, redlock.ErrNotHeld, errorOf(r.Attach(t.Context(), key, l.Token(), time.Now().Add(ttl))))
		require.NoError(t, l.Release(t.Context()))
		cluster.Settle(t, old)
		l = cluster.MustAcquire(t, r.Client, key, ttl)
		cluster.Settle(t, r.Client)
		servers.Take(key)
		require.Equal(t, redlock.KeyEternal, status())
		require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()))
		servers[6:].Down()
		cluster.AwaitNodesUp(t, r.Client, 6)
		require.Equal(t, redlock.KeyUnknown, status())
	})
}

// fromTo has a client change its nodes: from some of the servers to others, by their numbers.
func fromTo(servers fakeredis.Servers, from, to []int) func(*redlock.Config) {
	some := func(numbers []int) (nodes []string) {
		for _, i := range numbers {
			nodes = append(nodes, servers[i].Addr())
		}
		return nodes
	}
	return func(c *redlock.Config) { c.Nodes, c.NextNodes = some(from), some(to) }
}

var (
	three = []int{0, 1, 2}
	five  = []int{1, 2, 3, 4, 5} // two of them are in three
)

// TestNextNodesNeedBothQuorums: without a quorum of one of the lists nothing is won, also with most
// of all nodes up. The error says which, and an acquire is sent to none.
func TestNextNodesNeedBothQuorums(t *testing.T) {
	for name, c := range map[string]struct {
		down         []int
		nodes, nexts bool // lack a quorum then
		text         string
	}{
		"of Nodes":     {down: []int{0, 1}, nodes: true, text: "redlock: no quorum of Nodes (2 of 6 nodes failed: "},
		"of NextNodes": {down: []int{3, 4, 5}, nexts: true, text: "redlock: no quorum of NextNodes (3 of 6 nodes failed: "},
		"of neither":   {down: []int{1, 2, 3}, nodes: true, nexts: true, text: "redlock: no quorum of Nodes and none of NextNodes (3 of 6 nodes failed: "},
		"of both":      {down: []int{0, 4, 5}},
	} {
		cluster.Run(t, name, func(t *testing.T) {
			servers := cluster.Start(t, 6)
			r := cluster.Of(t, servers, fromTo(servers, three, five))
			held := cluster.MustAcquire(t, r.Client, "held", ttl)
			for _, i := range c.down {
				servers[i].Down()
			}
			cluster.AwaitNodesUp(t, r.Client, 6-len(c.down))
			if c.text == "" {
				require.NoError(t, cluster.IsReady(r))
				live(t, r.Client, "k")
				require.NoError(t, held.Release(t.Context()))
				return
			}
			check := func(err error) {
				t.Helper()
				requireOnly(t, err, redlock.ErrNoQuorum)
				q := testkit.As[*redlock.QuorumError](t, err)
				require.Equal(t, []any{c.nodes, c.nexts, 6, len(c.down)}, []any{q.InNodes, q.InNextNodes, q.Nodes, len(q.Failed)})
				require.ErrorContains(t, err, c.text)
			}
			check(cluster.IsReady(r))
			check(errorOf(r.TryAcquire(t.Context(), "k", ttl)))
			check(errorOf(r.TryAcquireAll(t.Context(), ttl, "a", "k")))
			check(cluster.Submit(t, r.Client, acquireOp("k")))
			for _, rec := range r.Recorders {
				require.Empty(t, rec.Calls("SET", "k"))
			}
			check(errorOf(r.Attach(t.Context(), "held", held.Token(), time.Now().Add(ttl))))
			require.Equal(t, redlock.KeyUnknown, testkit.Must(r.Inspect(t.Context(), "held"))(t).Status)
			check(held.Extend(t.Context(), ttl))
			check(held.Release(t.Context()))
		})
	}
}
