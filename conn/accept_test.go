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
	"github.com/redlock-go/redlock/internal/wire/refusal"
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
func TestServer(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		info := func(p *scripted.Server, id, before, uptime string) {
			p.Answers = map[string]string{
				"INFO server":      scripted.InfoOf("redis_version:7.0.15\r\nrun_id:" + p.RunID + "\r\nuptime_in_seconds:" + uptime + "\r\n"),
				"INFO replication": scripted.InfoOf("role:master\r\nmaster_replid:" + id + "\r\nmaster_replid2:" + before + "\r\n"),
			}
		}
		peers := scripted.NewN(t, 1, func(p *scripted.Server) { info(p, "h", "000", "5") })
		var r *testFleet
		refuse := errors.New("refused")
		var offered []Server
		refused := false // for a moment: the next dial is not
		r = newTestFleet(t, portable, peers, func(c *Config) {
			c.Looks = true
			knobs.OfConn(c).OnStays = func(int, bool) { refused = refused || errors.Is(r.Fault(0), refuse) }
			c.Accept = func(node int, s Server) error {
				offered = append(offered, s)
				if len(offered) == 2 {
					return refuse
				}
				return nil
			}
		})
		r.up()
		first := Server{Product: "redis", Version: "7.0.15", RunID: peers[0].RunID, History: "h", Uptime: 5 * time.Second}
		r.do(func() { require.Equal(t, first, r.Node(0).Server) })
		require.Equal(t, peers[0].RunID, first.Life())
		require.Equal(t, "redis 7.0.15", first.String())
		require.True(t, first.IsBefore(8))
		require.False(t, first.IsBefore(7))

		peers[0].Stop()
		r.lose(0)
		peers[0].Running.Wait()
		r.do(func() { require.Equal(t, first, r.Node(0).Server) })
		info(peers[0], "i", "h", "6")
		peers[0].Start(t)
		r.until("for the refusal", func() bool { return refused })
		r.wires[0] = nil
		peers[0].Next(t)
		r.up()
		second := first
		second.History, second.Before, second.Uptime = "i", "h", 6*time.Second
		r.do(func() {
			require.Equal(t, second, r.Node(0).Server)
			require.Equal(t, []Server{first, second, second}, offered)
		})
		require.Equal(t, first.RunID+"-i", second.Life())
	})
}

// TestLife: a life begins with a start and with a promotion, and not with a replica's first visit.
func TestLife(t *testing.T) {
	require.Equal(t, "r", (&Server{RunID: "r", History: "h"}).Life())
	require.Equal(t, "r", (&Server{RunID: "r", History: "i"}).Life())
	require.Equal(t, "r-i", (&Server{RunID: "r", History: "i", Before: "h"}).Life())
}

// TestReplicaIsReported: the owner hears that a node is a replica of another server, wherever that shows.
func TestReplicaIsReported(t *testing.T) {
	var heard []error
	var r *testFleet
	var fails atomic.Int64 // dials, each for another reason: more than are told apart
	r = newTestFleet(t, true, scripted.NewN(t, 1), func(c *Config) {
		c.OnDown = func(int) { heard = append(heard, r.Fault(0)) }
		knobs.OfConn(c).OnStays = func(int, bool) { heard = append(heard, r.Fault(0)) }
		c.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if n := fails.Add(-1); n >= 0 {
				return nil, fmt.Errorf("proxy: request %d failed", n)
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	})
	r.up()
	for name, become := range map[string]func(p *scripted.Server){
		"in a handshake": func(p *scripted.Server) {
			p.Answers = map[string]string{"INFO replication": scripted.InfoOf("role:slave\r\n")}
		},
		"by its greeting": func(p *scripted.Server) {
			p.Answers = map[string]string{"HELLO": scripted.WelcomeOf("standalone", "replica")}
		},
	} {
		p := r.peers[0]
		p.Stop()
		r.lose(0)
		p.Running.Wait()
		well := p.Answers
		become(p)
		fails.Store(2 * maxClasses)
		p.Start(t)
		r.until(name, func() bool { return errors.Is(heard[len(heard)-1], ErrNotMaster) })
		p.Stop()
		p.Running.Wait()
		p.Answers = well
		p.Start(t)
		r.up()
	}
	r.do(func() { r.nodes[0].fault = refusal.ErrNotMaster; r.reap() }) // as READONLY does
	r.do(func() { require.ErrorIs(t, heard[len(heard)-1], ErrNotMaster) })
}

// TestAnEndBeforeABegin: the owner hears of the end of a connection before it is asked for the next one, also where an idle
// one is replaced by a server that is another by now: it may keep a claim from one to the other.
func TestAnEndBeforeABegin(t *testing.T) {
	var heard []string
	r := newTestFleet(t, true, scripted.NewN(t, 1), func(c *Config) {
		c.Accept = func(int, Server) error { heard = append(heard, "accept"); return nil }
		c.OnDown = func(int) { heard = append(heard, "down") }
		c.OnUp = func(int) { heard = append(heard, "up") }
	})
	r.up()
	r.peers[0].Answers = map[string]string{"INFO replication": scripted.InfoOf("role:master\r\nmaster_replid:i\r\nmaster_replid2:h\r\n")}
	r.closeIdle(0)
	r.awaitDone(r.send("a"))
	r.up()
	r.do(func() { require.Equal(t, []string{"accept", "up", "down", "down", "accept", "up"}, heard) }) // it rests; it is down
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
