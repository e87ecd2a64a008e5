package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

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
				require.Equal(t, c.nodes, q.InNodes)
				require.Equal(t, c.nexts, q.InNextNodes)
				require.Equal(t, 6, q.Nodes)
				require.Len(t, q.Failed, len(c.down))
				require.ErrorContains(t, err, c.text)
			}
			check(cluster.IsReady(r))
			_, err := r.TryAcquire(t.Context(), "k", ttl)
			check(err)
			_, err = r.TryAcquireAll(t.Context(), ttl, "a", "k")
			check(err)
			check(cluster.Submit(t, r.Client, &redlock.Op{Kind: redlock.OpAcquire, Key: []byte("k"), TTL: ttl}))
			for _, rec := range r.Recorders {
				require.Empty(t, rec.Calls("SET", "k"))
			}
			_, err = r.Attach(t.Context(), "held", held.Token(), time.Now().Add(ttl))
			check(err)
			s := testkit.Must(r.Inspect(t.Context(), "held"))(t)
			require.Equal(t, redlock.KeyUnknown, s.Status)
			check(held.Extend(t.Context(), ttl))
			check(held.Release(t.Context()))
		})
	}
}
