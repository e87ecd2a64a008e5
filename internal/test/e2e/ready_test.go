package e2e

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
	"github.com/redlock-go/redlock/internal/wire/refusal"
)

// TestReady: once a quorum of nodes is up Ready returns, woken by the last of them. When its context ends before, its error
// has the nodes that cannot vote, and the cause.
func TestReady(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		servers := cluster.Start(t, 3)
		r := cluster.Of(t, servers, cluster.Portable(portable))
		require.NoError(t, cluster.IsReady(r))
		var none context.Context
		require.NoError(t, r.Ready(none), "it has no end")
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("a cause of one's own"))
		require.NoError(t, r.Ready(ended), "it need not wait")

		servers[1].Down()
		cluster.AwaitNodesUp(t, r.Client, 2)
		require.NoError(t, cluster.IsReady(r), "a quorum is left")
		servers[2].Down()
		cluster.AwaitNodesUp(t, r.Client, 1)
		err := r.Ready(ended)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.Len(t, testkit.As[*redlock.QuorumError](t, err).Failed, 2)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "a cause of one's own")

		var waiting []<-chan error
		for range 3 {
			waiting = append(waiting, testkit.Start(func() error { return r.Ready(context.Background()) }))
		}
		require.NoError(t, servers[2].Heal())
		for _, w := range waiting {
			require.NoError(t, testkit.Outcome(t, "Ready", w))
		}

		servers[0].Down()
		cluster.AwaitNodesUp(t, r.Client, 1)
		waits := testkit.Start(func() error { return r.Ready(context.Background()) })
		require.NoError(t, r.Close())
		require.Equal(t, redlock.ErrClosed, testkit.Outcome(t, "Ready", waits))
		require.Equal(t, redlock.ErrClosed, cluster.IsReady(r))
	})
}

// TestNewRefusesWhatDoesNotMend: if every node refuses for a reason mended only by a person, New
// fails at once and names them node by node. One that may mend is enough to go on.
func TestNewRefusesWhatDoesNotMend(t *testing.T) {
	_, secure := testkit.NewIdentity(t)
	for name, c := range map[string]struct {
		opts   fakeredis.Options
		do     func(*fakeredis.Server)
		scheme string
		want   error
	}{
		"password":      {fakeredis.Options{Password: "another"}, func(*fakeredis.Server) {}, "redis://:sesame@", conn.ErrAuth},
		"no permission": {fakeredis.Options{Deny: []string{"EVALSHA"}}, func(*fakeredis.Server) {}, "redis://", conn.ErrForbidden},
		"refused":       {fakeredis.Options{Password: "sesame"}, func(s *fakeredis.Server) { s.ErrorReply("EVAL", "ERR this proxy knows no sesame", 0) }, "redis://:sesame@", conn.ErrRefused},
		"protected":     {fakeredis.Options{}, func(s *fakeredis.Server) { s.RejectConns("DENIED Redis is running in protected mode") }, "redis://", refusal.ErrProtected},
		"no RESP":       {fakeredis.Options{}, func(s *fakeredis.Server) { s.WrongReply("HELLO", "HTTP/1.1 400 Bad Request\r\n", 0) }, "redis://", conn.ErrNotRESP},
		"TLS":           {fakeredis.Options{}, func(*fakeredis.Server) {}, "rediss://", conn.ErrNotTLS},
	} {
		t.Run(name, func(t *testing.T) {
			servers := fakeredis.StartN(t, 3, c.opts)
			cfg := redlock.Config{TLS: secure, DialTimeout: testkit.Patience}
			for _, s := range servers {
				c.do(s)
				cfg.Nodes = append(cfg.Nodes, c.scheme+s.Addr())
			}
			testkit.AtOnce(t, func() {
				client, err := redlock.New(cfg)
				require.Nil(t, client)
				require.ErrorIs(t, err, redlock.ErrConfig)
				require.ErrorIs(t, err, c.want)
				servers.Each(func(s *fakeredis.Server) { require.ErrorContains(t, err, s.Addr()) })
				require.NotContains(t, err.Error(), "sesame")
			})
			servers[1].Down()
			client := testkit.Must(redlock.New(cfg))(t)
			require.ErrorIs(t, cluster.IsReady(client), c.want)
			require.NoError(t, client.Close())
		})
	}
}

// TestNewWaitsForAQuorum: a silent master of three costs a client 50 ms, and redlock run 5. The client hears of it when it
// has failed.
func TestNewWaitsForAQuorum(t *testing.T) {
	for own, most := range map[time.Duration]time.Duration{0: 50 * time.Millisecond, 2 * time.Millisecond: 5 * time.Millisecond} {
		cluster.Run(t, own.String(), func(t *testing.T) {
			var log testkit.LogSink
			servers := cluster.Start(t, 6)
			for _, silent := range []int{0, 4} {
				servers[silent].Hang()
			}
			began := time.Now()
			cfg := redlock.Config{Groups: [][]string{fakeredis.Addrs(servers[:3]), fakeredis.Addrs(servers[3:])}, Logger: log.Logger(slog.LevelWarn)}
			knobs.Of(&cfg).Stragglers = own
			cluster.MarkPassword(&cfg)
			c := testkit.Must(cluster.NewMachine(t).Client(cfg))(t)
			defer c.Close()
			require.Less(t, time.Since(began), most)
			require.NoError(t, cluster.IsReady(c))
			require.ErrorContains(t, c.Stats().Nodes[4].Err, "its first dial is under way")
			require.Empty(t, log.String())
			time.Sleep(2 * time.Second)
			require.Equal(t, 2, strings.Count(log.String(), "node is down"), log.String())
			require.Contains(t, log.String(), "no answer within 1s (DialTimeout) to the greeting")
		})
	}
}

// TestNewMeetsAMisfit: a replica that answers a little after the quorum makes New fail all the same, and one without a
// quorum beside it is waited for.
func TestNewMeetsAMisfit(t *testing.T) {
	for name, harm := range map[string]func(s fakeredis.Servers, m *virtual.Machine){
		"a little late": func(s fakeredis.Servers, m *virtual.Machine) { m.Link(s[2].Addr()).Delay(15*time.Millisecond, 0, 0) },
		"a node is down": func(s fakeredis.Servers, m *virtual.Machine) {
			s[0].Down()
			m.Link(s[2].Addr()).Delay(200*time.Millisecond, 0, 0)
		},
		"no node is up":      func(s fakeredis.Servers, _ *virtual.Machine) { s[:2].Down() },
		"the others are far": func(s fakeredis.Servers, m *virtual.Machine) { m.Link(s[0].Addr()).Delay(200*time.Millisecond, 0, 0) },
	} {
		cluster.Run(t, name, func(t *testing.T) {
			servers := cluster.Start(t, 3)
			servers[2].Demote()
			m := cluster.NewMachine(t)
			harm(servers, m)
			cfg := redlock.Config{Nodes: fakeredis.Addrs(servers), Logger: slog.New(slog.DiscardHandler)}
			cluster.MarkPassword(&cfg)
			_, err := m.Client(cfg)
			require.ErrorIs(t, err, redlock.ErrConfig)
			require.ErrorIs(t, err, conn.ErrNotMaster)
		})
	}
}

// TestAnActAfterNew looks at all nodes, also at one that New has not waited for.
func TestAnActAfterNew(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		servers := cluster.Start(t, 3)
		m := cluster.NewMachine(t)
		m.Link(servers[2].Addr()).Delay(200*time.Millisecond, 0, 0)
		cfg := redlock.Config{Nodes: fakeredis.Addrs(servers), Logger: slog.New(slog.DiscardHandler), NodeTimeout: time.Second}
		fenced(0)(&cfg)
		cluster.MarkPassword(&cfg)
		c := testkit.Must(m.Client(cfg))(t)
		defer c.Close()
		require.ErrorIs(t, c.Stats().Nodes[2].Err, conn.ErrDown)
		require.NoError(t, c.InitFencing(t.Context()))
		testkit.Await(t, "each node to have the tokens", func() bool { return servers.Holders("redlock:fence") == 3 })
	})
}

// TestARefusedNewWritesNothing: what it would write has other clients of these nodes refused. A server by two names is found
// out by its run_id: the error has both names.
func TestARefusedNewWritesNothing(t *testing.T) {
	for name, wrong := range map[string]struct {
		config func(s fakeredis.Servers, again string, c *redlock.Config)
		want   error
		text   string
	}{
		"two names": {func(_ fakeredis.Servers, again string, c *redlock.Config) {
			c.Nodes = append(c.Nodes, again, "other:9")
		}, conn.ErrSameServer, "same server as another node"},
		"two names in NextNodes": {func(_ fakeredis.Servers, again string, c *redlock.Config) {
			c.NextNodes = append([]string{again}, c.Nodes[1:]...)
		}, conn.ErrSameServer, "write one name for a server in Nodes and NextNodes"},
		"two names in groups": {func(_ fakeredis.Servers, again string, c *redlock.Config) {
			c.Groups, c.Nodes = [][]string{c.Nodes, {again}}, nil
		}, conn.ErrSameServer, "same server as another node"},
		"a replica":     {func(s fakeredis.Servers, _ string, _ *redlock.Config) { s[1].Demote() }, conn.ErrNotMaster, ""},
		"no permission": {func(s fakeredis.Servers, _ string, _ *redlock.Config) { s[1].Deny("EVALSHA") }, conn.ErrForbidden, ""},
		"no run_id":     {func(s fakeredis.Servers, _ string, _ *redlock.Config) { s[1].Deny("INFO") }, conn.ErrNoRunID, "fencing: "},
		"each refuses": {func(s fakeredis.Servers, _ string, _ *redlock.Config) {
			s.Each(func(s *fakeredis.Server) { s.Deny("EVAL", "EVALSHA", "SCRIPT") })
		}, conn.ErrForbidden, ""},
	} {
		cluster.Run(t, name, func(t *testing.T) {
			servers := cluster.Start(t, 3)
			m := cluster.NewMachine(t)
			m.Link(servers[1].Addr()).Delay(20*time.Millisecond, 0, 0)
			_, port, err := net.SplitHostPort(servers[0].Addr())
			require.NoError(t, err)
			cfg := redlock.Config{Nodes: fakeredis.Addrs(servers), Logger: slog.New(slog.DiscardHandler)}
			fenced(0)(&cfg)
			knobs.Of(&cfg).Lookup = func(context.Context, string, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			}
			wrong.config(servers, "db:"+port, &cfg)
			var written atomic.Int64 // a key at any moment
			servers.Each(func(s *fakeredis.Server) {
				s.OnCommand(func(int64, []string) { written.Add(int64(s.Len())) })
			})
			cluster.MarkPassword(&cfg)
			_, err = m.Client(cfg)
			require.ErrorIs(t, err, redlock.ErrConfig)
			require.ErrorIs(t, err, wrong.want)
			require.ErrorContains(t, err, wrong.text)
			if wrong.want == conn.ErrSameServer {
				require.ErrorContains(t, err, servers[0].Addr())
				require.ErrorContains(t, err, "db:"+port)
			}
			time.Sleep(5 * time.Second)
			require.Zero(t, servers[0].Conns()+servers[1].Conns()+servers[2].Conns())
			require.Zero(t, servers[0].Len()+servers[1].Len()+servers[2].Len())
			require.Zero(t, written.Load())
		})
	}
}
