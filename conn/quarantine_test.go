package conn

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/scripted"
	"github.com/redlock-go/redlock/internal/wire/refusal"
	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
)

// restart is a peer's process that ends and another that begins.
func (r *testFleet) restart(node int) {
	r.t.Helper()
	r.restartWith(node, func(p *scripted.Server) { p.RunID = scripted.NewRunID() })
}

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

func (r *testFleet) quarantinedNow() (nodes quorum.Set) {
	r.do(func() { nodes = r.Quarantined() })
	return nodes
}

// TestQuarantine: a node whose run_id has changed has no vote until the longest
// TTL that was sent has passed, counted from when it came back.
func TestQuarantine(t *testing.T) {
	onBothPaths(t, 3, func(t *testing.T, r *testFleet) {
		require.Zero(t, r.quarantinedNow(), "a first contact is trusted")
		r.restart(0)
		require.Zero(t, r.quarantinedNow(), "no TTL was sent")
		r.do(func() { r.NoteTTL(10 * time.Second); r.NoteTTL(time.Second) })

		r.restartWith(0, func(*scripted.Server) {}) // a connection that ends is not a restart
		require.Zero(t, r.quarantinedNow())

		r.restart(1)
		require.Equal(t, quorum.Set(0b010), r.quarantinedNow())
		r.clock.Advance(9 * time.Second)
		r.restart(2)
		r.do(func() { r.NoteTTL(time.Minute) }) // concerns nothing that was forgotten
		require.Equal(t, quorum.Set(0b110), r.quarantinedNow())
		r.clock.Advance(time.Second)
		require.Equal(t, quorum.Set(0b100), r.quarantinedNow())
		r.clock.Advance(9 * time.Second)
		require.Zero(t, r.quarantinedNow())
		r.restart(2)
		require.Equal(t, quorum.Set(0b100), r.quarantinedNow(), "again")
	})
}

// TestQuarantineOfANodeThatIsUp: what it has been up for counts, but for a second,
// which its clock may have rounded up. Connections that end change nothing.
func TestQuarantineOfANodeThatIsUp(t *testing.T) {
	const quarantine = 10 * time.Second
	for uptime, want := range map[string]time.Duration{
		"0": quarantine, "1": quarantine, "2": 9 * time.Second, "10": time.Second, "11": 0, "999": 0,
	} {
		up := func(p *scripted.Server) {
			p.Answers = map[string]string{"INFO server": scripted.InfoOf("run_id:" + p.RunID + "\r\nuptime_in_seconds:" + uptime + "\r\n")}
		}
		r := newTestFleet(t, true, scripted.NewN(t, 1, up), func(c *Config) { c.Quarantine = quarantine })
		r.up()
		r.wires[0].Cut()
		r.lose(0)
		r.up()
		r.do(func() { require.Equal(t, want, r.Node(0).Quarantined, uptime) })
		if want > 0 {
			r.clock.Advance(want - 1)
			require.Equal(t, quorum.Set(1), r.quarantinedNow(), uptime)
			r.clock.Advance(1)
		}
		require.Zero(t, r.quarantinedNow(), uptime)
	}
}

// TestPersistentNodesAreTrusted, and so is everything without a quarantine.
func TestPersistentNodesAreTrusted(t *testing.T) {
	r := newUpFleet(t, true, 2, func(c *Config) { c.Addresses[0].Persistent = true })
	r.do(func() { r.NoteTTL(time.Minute) })
	r.restart(0)
	r.restart(1)
	require.Equal(t, quorum.Set(0b10), r.quarantinedNow())

	r = newUpFleet(t, true, 1, func(c *Config) { c.TrustRestarts = true; c.Quarantine = time.Hour })
	r.restart(0)
	require.Zero(t, r.quarantinedNow())
}

// TestRunIDThatComesAndGoes: a server that ceases to show it may be another, and so
// may one that begins to.
func TestRunIDThatComesAndGoes(t *testing.T) {
	r := newUpFleet(t, true, 1)
	r.do(func() { r.NoteTTL(time.Second) })
	for i, answers := range []map[string]string{{"INFO": "-NOPERM no\r\n"}, r.peers[0].Answers} {
		r.restartWith(0, func(p *scripted.Server) { p.Answers = answers })
		require.Equal(t, quorum.Set(1), r.quarantinedNow(), i)
		r.clock.Advance(time.Second)
		require.Zero(t, r.quarantinedNow(), i)
	}
}

// TestWhatANodeMustShow: a run_id where a restart must be seen, and a version from Redis 5 on where acquires are
// fenced. Without a run_id several nodes are not compared.
func TestWhatANodeMustShow(t *testing.T) {
	silent := map[string]string{"INFO": "-NOPERM no\r\n"}
	old := map[string]string{"HELLO": "-ERR unknown command\r\n", "INFO server": scripted.InfoOf("redis_version:4.0.14\r\nrun_id:x\r\n")}
	for name, c := range map[string]struct {
		answers    map[string]string
		nodes      int
		cfg        Config
		persistent bool
		want       error
		text       string
	}{
		"no run_id":                     {answers: silent, nodes: 3},
		"no run_id, a quarantine":       {answers: silent, nodes: 1, cfg: Config{Quarantine: time.Minute}, want: ErrNoRunID, text: "command info"},
		"no run_id, trusted":            {answers: silent, nodes: 1, cfg: Config{TrustRestarts: true, Quarantine: time.Minute}},
		"no run_id, persistent":         {answers: silent, nodes: 1, cfg: Config{Quarantine: time.Minute}, persistent: true},
		"no run_id, trusted, fenced":    {answers: silent, nodes: 1, cfg: Config{TrustRestarts: true, Fenced: true}, want: ErrNoRunID},
		"no run_id, persistent, fenced": {answers: silent, nodes: 1, cfg: Config{Fenced: true}, persistent: true, want: ErrNoRunID},
		"Redis 4":                       {answers: old, nodes: 1},
		"Redis 4, fenced":               {answers: old, nodes: 1, cfg: Config{Fenced: true}, want: ErrTooOld, text: "redis 4.0.14"},
	} {
		t.Run(name, func(t *testing.T) {
			peers := scripted.NewN(t, c.nodes, func(p *scripted.Server) { p.Answers = c.answers })
			r := newTestFleet(t, true, peers, func(cfg *Config) {
				cfg.TrustRestarts, cfg.Quarantine, cfg.Fenced = c.cfg.TrustRestarts, c.cfg.Quarantine, c.cfg.Fenced
				cfg.Addresses[0].Persistent = c.persistent
			})
			if c.want == nil {
				r.up()
				require.Zero(t, r.quarantinedNow())
				return
			}
			r.AwaitFirst(nil, nil)
			r.do(func() {
				require.ErrorIs(t, r.Fault(0), c.want)
				require.ErrorContains(t, r.Fault(0), c.text)
			})
		})
	}
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

// TestPromotion: a node that has become a replica of another server forgets, also if it was declared persistent, and
// also where only its refusal, or an answer in the middle of a connection, has shown it.
func TestPromotion(t *testing.T) {
	info := func(fields string) map[string]string {
		return map[string]string{"INFO replication": scripted.InfoOf(fields + "\r\n")}
	}
	const plain, promoted = "role:master\r\nmaster_replid:h\r\nmaster_replid2:000", "role:master\r\nmaster_replid:i\r\nmaster_replid2:x"
	for _, persistent := range []bool{false, true} {
		r := newUpFleet(t, true, 1, func(c *Config) { c.Addresses[0].Persistent = persistent })
		r.do(func() { r.NoteTTL(10 * time.Second) })
		for i, step := range []struct {
			said string
			want quorum.Set
		}{{plain, 0}, {promoted, 1}, {promoted, 0}, {"role:master\r\nmaster_replid:j\r\nmaster_replid2:000", 0}} {
			r.restartWith(0, func(p *scripted.Server) { p.Answers = info(step.said) }) // of the same run_id
			require.Equal(t, step.want, r.quarantinedNow(), i)
			r.clock.Advance(10 * time.Second)
			require.Zero(t, r.quarantinedNow(), i)
		}
		for name, become := range map[string]func(p *scripted.Server){
			"in a handshake": func(p *scripted.Server) { p.Answers = info("role:slave") },
			"by its greeting": func(p *scripted.Server) {
				p.Answers = map[string]string{"HELLO": scripted.WelcomeOf("standalone", "replica")}
			},
		} {
			r.restartWith(0, func(*scripted.Server) {}) // or it is idle, and rests
			p := r.peers[0]
			p.Stop()
			r.lose(0)
			p.Running.Wait()
			become(p)
			p.Start(t)
			require.Eventually(t, func() (is bool) {
				r.do(func() { is = errors.Is(r.Fault(0), ErrNotMaster) })
				return is
			}, 10*time.Second, time.Millisecond, name)
			p.Stop()
			p.Running.Wait()
			p.Answers = info(plain)
			p.Start(t)
			r.up()
			require.Equal(t, quorum.Set(1), r.quarantinedNow(), name)
			r.clock.Advance(10 * time.Second)
		}
		r.do(func() { r.nodes[0].fault = refusal.ErrNotMaster; r.reap() }) // as READONLY does
		r.up()
		require.Equal(t, quorum.Set(1), r.quarantinedNow(), "READONLY")
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
			r.NoteTTL(10 * time.Second)
		})
		r.restart(0)
		require.Equal(t, c.want != "", r.quarantinedNow() == 1, name)
	}
}
