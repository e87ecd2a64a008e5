package majority

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
)

func open(t *testing.T) (*conn.Nodes, *quorum.Config) {
	addrs, err := conn.ParseAddresses(cluster.RealAddrs(realredis.StartN(t, 3)))
	require.NoError(t, err)
	nodes, err := conn.Open(conn.Config{Addresses: addrs, StallTimeout: time.Minute})
	require.NoError(t, err)
	t.Cleanup(nodes.Close)
	nodes.Await(t.Context())
	return nodes, quorum.Majority(quorum.First(len(addrs)))
}

func TestRealLeader(t *testing.T) {
	nodes, all := open(t)
	for _, c := range []struct {
		term string
		want quorum.Verdict
	}{{"7", quorum.Won}, {"9", quorum.Won}, {"8", quorum.Lost}, {"9", quorum.Won}} {
		require.Equal(t, c.want, lead(t.Context(), nodes, all, "leader", c.term), c.term)
	}
}

// TestRealRegister: what one node of three has is returned by each read from the first that sees it on.
func TestRealRegister(t *testing.T) {
	nodes, all := open(t)
	r := &register{nodes, all, "register"}
	for version := range uint64(19) {
		require.NoError(t, r.write(t.Context(), version+1, "value"))
	}
	half := &single{done: make(chan error, 1)} // a write that has reached one node
	half.Owner, half.Replies = half, 1
	half.Buf = resp.AppendCommand(nil, "SET", "register", "1000:half written")
	nodes.Use(func(f *conn.Fleet) { f.SendTo(1, &half.Batch) })
	require.NoError(t, <-half.done)
	for seen := false; !seen; {
		version, value, err := r.read(t.Context())
		require.NoError(t, err)
		require.Contains(t, []uint64{19, 1000}, version)
		seen = version == 1000
		if seen {
			require.Equal(t, "half written", value)
		}
	}
	for range 100 {
		version, _, err := r.read(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1000, version)
	}
}

// single is a batch for one node.
type single struct {
	conn.Batch
	err  error
	done chan error
}

func (s *single) Reply(int, int, *resp.Value) error { return nil }
func (s *single) Fail(_, _ int, err error)          { s.err = err }
func (s *single) Done()                             { s.done <- s.err }
