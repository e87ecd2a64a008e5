package e2e

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestIdleClient: servers that close idle connections cost no warning, no hook and no readiness.
func TestIdleClient(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		var log testkit.LogSink
		var y cluster.HookRecorder
		r := cluster.New(t, 3, plainly, cluster.Listening(&y), func(c *redlock.Config) { c.Logger = log.Logger(slog.LevelInfo) })
		for range 12 {
			time.Sleep(5 * time.Second)
			r.Servers.Each((*fakeredis.Server).CloseConns)
			for range 100 {
				require.NoError(t, cluster.IsReady(r))
				time.Sleep(50 * time.Microsecond)
			}
		}
		for _, n := range r.Stats().Nodes {
			require.EqualValues(t, 13, n.Connects)
		}
		cluster.AwaitHooks(t, r.Client)
		require.NotContains(t, log.String(), "level=WARN")
		require.Equal(t, 3, strings.Count(log.String(), "closes idle connections"), "once for each")
		require.Len(t, cluster.Take(&y, &y.Nodes), 3, "they came up at first")

		time.Sleep(5 * time.Second)
		r.Servers[0].Down()
		time.Sleep(time.Second)
		require.Equal(t, 1, strings.Count(log.String(), "node is down"), "an outage begins the same way")
		require.Len(t, cluster.Take(&y, &y.Nodes), 1)
	})
}

// TestNoAttemptMeetsAnIdleEnd: at each moment around the one at which all servers close their idle connections an
// attempt wins, and leaves nothing.
func TestNoAttemptMeetsAnIdleEnd(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3, plainly)
		failed := 0
		for i := range 1000 {
			time.Sleep(5 * time.Second)
			at := time.Duration(i-500) * 2 * time.Microsecond // from the close on
			if at < 0 {
				time.AfterFunc(-at, func() { r.Servers.Each((*fakeredis.Server).CloseConns) })
			} else {
				r.Servers.Each((*fakeredis.Server).CloseConns)
				time.Sleep(at)
			}
			l, err := r.TryAcquire(t.Context(), "k", 10*time.Second)
			if err != nil {
				failed++
				t.Log(at, err)
				continue
			}
			l.ReleaseAsync()
		}
		require.Zero(t, failed)
		time.Sleep(time.Second)
		r.AwaitEmpty(t)
	})
}

// TestAServerRestartsWhileIdle: what waits for the next connection is not sent to a server that has forgotten.
func TestAServerRestartsWhileIdle(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		for i := range 40 {
			servers := cluster.Start(t, 3)
			m := cluster.NewMachine(t)
			m.Link(servers[2].Addr()).Refuse(true)
			holder := cluster.ConnectOn(t, m, fakeredis.Addrs(servers), plainly)
			c := cluster.Connect(t, fakeredis.Addrs(servers), plainly)
			require.NoError(t, cluster.MustAcquire(t, c, "another", time.Minute).Release(t.Context()))
			held := cluster.MustAcquire(t, holder, "k", time.Minute)
			time.Sleep(5 * time.Second)
			require.NoError(t, servers[0].Restart(true))
			servers[1:].Each((*fakeredis.Server).CloseConns)
			time.Sleep(time.Duration(i) * 20 * time.Microsecond)
			require.Error(t, errorOf(c.TryAcquire(t.Context(), "k", time.Minute)), "two hold it")
			require.Positive(t, held.Remaining())
			time.Sleep(time.Second)
			require.Positive(t, c.Stats().Nodes[0].NoVoteFor)
			servers.Each(func(s *fakeredis.Server) { _ = s.Close() })
		}
	})
}

// TestReadyAllWhileANodeRests: a client that was idle waits for the next connection to a node, whose server may have
// restarted, and then for its vote.
func TestReadyAllWhileANodeRests(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		const way = 10 * time.Millisecond
		servers, m := cluster.Start(t, 3), cluster.NewMachine(t)
		c := cluster.ConnectOn(t, m, fakeredis.Addrs(servers), plainly)
		require.NoError(t, c.ReadyAll(t.Context()))
		m.Link(servers[0].Addr()).Delay(way, way, 0)
		time.Sleep(5 * time.Second)
		require.NoError(t, servers[0].Restart(true))
		time.Sleep(way + way/2)
		before := c.Stats().Nodes[0]
		require.True(t, before.Up && before.Connects == 1, "it rests")
		require.NoError(t, c.ReadyAll(t.Context()))
		after := c.Stats().Nodes[0]
		require.EqualValues(t, 2, after.Connects)
		require.NoError(t, after.NoVote)
	})
}
