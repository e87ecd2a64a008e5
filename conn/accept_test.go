package conn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/scripted"
	"github.com/redlock-go/redlock/resp"
)

// restartWith is a process of a peer that ends and another that begins, after a change.
func (r *testFleet) restartWith(node int, change func(*scripted.Server)) {
	r.t.Helper()
	p := r.peers[node]
	p.Stop()
	r.lose(node)
	p.Running.Wait() // the last handshake reads it
	change(p)
	p.Start(r.t)
	r.up()
}

// TestServer: what a server has said stays when its connection ends, and Accept hears the next one's before it is the node's.
// A life begins with a start and with a promotion.
func TestServer(t *testing.T) {
	info := func(id, before, uptime string) func(p *scripted.Server) {
		return func(p *scripted.Server) {
			p.Answers = map[string]string{
				"INFO server":      scripted.InfoOf("redis_version:7.0.15\r\nrun_id:" + p.RunID + "\r\nuptime_in_seconds:" + uptime + "\r\n"),
				"INFO replication": scripted.InfoOf("role:master\r\nmaster_replid:" + id + "\r\nmaster_replid2:" + before + "\r\n"),
			}
		}
	}
	refuse := errors.New("refused")
	var offered []Server
	r := newTestFleet(t, true, scripted.NewN(t, 1, info("h", "000", "5")), func(c *Config) {
		c.Accept = func(_ int, s Server) error {
			offered = append(offered, s)
			if len(offered) == 2 { // for a moment: the next dial is not
				return refuse
			}
			return nil
		}
	})
	r.up()
	first := Server{Product: "redis", Version: "7.0.15", RunID: r.peers[0].RunID, History: "h", Uptime: 5 * time.Second}
	require.Equal(t, first, r.look(0).Server)
	require.Equal(t, first.RunID, first.Life())
	require.Equal(t, "redis 7.0.15", first.String())
	require.True(t, first.IsBefore(8))
	require.False(t, first.IsBefore(7))

	second := first
	second.History, second.Before, second.Uptime = "i", "h", 6*time.Second
	r.restartWith(0, func(p *scripted.Server) {
		require.Equal(t, first, r.look(0).Server)
		info("i", "h", "6")(p)
	})
	require.Equal(t, second, r.look(0).Server)
	require.Equal(t, []Server{first, second, second}, offered)
	require.Equal(t, first.RunID+"-i", second.Life())
}

// TestReplicaIsReported: the owner hears that a node is a replica of another server, however many failures it has had.
func TestReplicaIsReported(t *testing.T) {
	var heard []error
	var r *testFleet
	var fails atomic.Int64 // dials, each for another reason: more than are told apart
	r = newTestFleet(t, true, scripted.NewN(t, 1), func(c *Config) {
		knobs.OfConn(c).OnStays = func(int, bool) { heard = append(heard, r.Fault(0)) }
		c.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if n := fails.Add(-1); n >= 0 {
				return nil, fmt.Errorf("proxy: request %d failed", n)
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	})
	r.up()
	p := r.peers[0]
	r.restartWith(0, func(*scripted.Server) {
		answers("INFO replication", scripted.InfoOf("role:slave\r\n"))(p)
		fails.Store(2 * maxClasses)
		p.Start(t)
		r.until("the report", func() bool { return len(heard) > 0 && errors.Is(heard[len(heard)-1], ErrNotMaster) })
		p.Stop()
		p.Running.Wait()
		p.Answers = nil
	})
}

// TestOneServerIsOneNode: of two addresses of a server the second is refused, until the first has lost its connection.
func TestOneServerIsOneNode(t *testing.T) {
	peers := scripted.NewN(t, 2)
	peers[1].RunID = peers[0].RunID
	r := newTestFleet(t, true, peers)
	r.AwaitFirst(nil, nil)
	var first int
	r.do(func() {
		first = r.Away().Least() ^ 1
		err := r.Fault(1 - first)
		require.ErrorIs(t, err, ErrSameServer)
		require.ErrorContains(t, err, r.Node(first).Addr)
	})
	peers[first].Stop()
	r.until("for the other", func() bool { return r.Fault(1-first) == nil })
}

// TestSeveralServersAtOneAddress: a run_id that comes back shows that two servers run. It is said once.
func TestSeveralServersAtOneAddress(t *testing.T) {
	var log testkit.LogSink
	r := newUpFleet(t, true, 1, func(cfg *Config) { cfg.Logger = log.Logger(slog.LevelWarn) })
	first, second := r.peers[0].RunID, scripted.NewRunID()
	for i, c := range []struct {
		runID string
		said  int
	}{{first, 0}, {second, 0}, {second, 0}, {scripted.NewRunID(), 0}, {first, 1}, {second, 1}} {
		r.restartWith(0, func(p *scripted.Server) { p.RunID = c.runID })
		r.dials.Wait() // a warning comes after the connection
		require.Equal(t, c.said, strings.Count(log.String(), "several servers"), i)
	}
}

// TestDeclaredPersistent: a node declared persistent is believed unless its own settings show that it forgets. Then it
// is warned of at once, and treated as any other.
func TestDeclaredPersistent(t *testing.T) {
	setting := func(value string) string {
		return string(resp.AppendBulkString(resp.AppendBulkString([]byte("%1\r\n"), "appendfsync"), value))
	}
	on, off := scripted.InfoOf("aof_enabled:1\r\n"), scripted.InfoOf("aof_enabled:0\r\n")
	for name, c := range map[string]struct {
		info, config string
		want         string
	}{
		"as declared":         {on, setting("always"), ""},
		"no file":             {off, setting("always"), "appendonly no"},
		"no file, no setting": {off, "-NOPERM no\r\n", "appendonly no"},
		"a second":            {on, setting("everysec"), "appendfsync everysec"},
		"never":               {on, string(resp.AppendBulkString(resp.AppendBulkString([]byte("*2\r\n"), "appendfsync"), "no")), "appendfsync no"},
		"forbidden":           {"-NOPERM no\r\n", "-NOPERM no\r\n", ""},
		"CONFIG is unknown":   {on, "-ERR unknown command\r\n", ""},
		"it says nothing":     {scripted.InfoOf(""), "*0\r\n", ""},
	} {
		var log testkit.LogSink
		said := func(p *scripted.Server) {
			p.Answers = map[string]string{"INFO persistence": c.info, "CONFIG GET": c.config}
		}
		r := newTestFleet(t, true, scripted.NewN(t, 1, said), func(cfg *Config) {
			cfg.Addresses[0].Persistent = true
			cfg.Logger = log.Logger(slog.LevelWarn)
		})
		r.up()
		r.dials.Wait() // a warning comes after the connection
		require.Equal(t, c.want != "", strings.Contains(log.String(), `settings="`+c.want+`"`), "%s: %s", name, log.String())
		r.do(func() {
			require.Equal(t, c.want, r.Node(0).Volatile, name)
			require.Equal(t, c.want == "", r.Node(0).Server.Keeps, name)
		})
	}
}
