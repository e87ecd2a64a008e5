package conn

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/scripted"
	"github.com/redlock-go/redlock/resp"
)

func TestInfoIsRead(t *testing.T) {
	const id40 = "0123456789abcdef0123456789abcdef01234567"
	for info, want := range map[string]identity{
		"": {},
		"# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:" + id40 + "\r\nuptime_in_seconds:61\r\n": {Server: Server{RunID: id40, Product: "redis", Version: "7.0.15", Uptime: 61 * time.Second}},
		"# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\nserver_mode:standalone\r\n": {
			Server: Server{Product: "valkey", Version: "9.1.2"}},
		"valkey_version:9.1.2\r\nredis_version:7.2.4\r\n":                                                {Server: Server{Product: "valkey", Version: "9.1.2"}},
		"role:master\r\nmaster_replid:x\r\nrun_identity:y\r\n":                                           {Server: Server{History: "x"}},
		"master_replid:x\r\nmaster_replid2:" + strings.Repeat("0", 40) + "\r\nsecond_repl_offset:-1\r\n": {Server: Server{History: "x"}},
		"master_replid:" + id40 + "\r\nmaster_replid2:" + id40 + "\r\n":                                  {Server: Server{History: id40, Before: id40}},
		"# Persistence\r\nloading:0\r\naof_enabled:1\r\n":                                                {},
		"aof_enabled:0\r\n": {volatile: "appendonly no"},
		"role:primary\r\n":  {},
		"maxmemory:0\r\nmaxmemory_policy:noeviction\r\n":                {policy: "noeviction"},
		"maxmemory_policy:volatile-lru\n":                               {policy: "volatile-lru"},
		"maxmemory_policy:" + marked + "\r\n":                           {policy: "unknown"},
		"uptime_in_seconds:-1\r\n":                                      {},
		"uptime_in_seconds:99999999999\r\n":                             {},
		"run_id:a b\r\nredis_version:1\x1b[1m\r\n":                      {Server: Server{Product: "redis"}},
		"run_id:" + strings.Repeat("x", 65) + "\r\nno colon\r\n:\r\n::": {},
	} {
		var dial try
		require.NoError(t, dial.checkInfo(&resp.Value{Kind: resp.Bulk, Bytes: []byte(info)}), info)
		assert.Equal(t, want, dial.id, info)
	}
	named := identity{Server: Server{Product: "valkey", Version: "9.1.2"}} // by HELLO: in INFO Valkey calls itself Redis
	dial := try{id: named}
	require.NoError(t, dial.checkInfo(&resp.Value{Kind: resp.Bulk, Bytes: []byte("redis_version:7.2.4\r\nserver_name:valkey\r\n")}))
	assert.Equal(t, named, dial.id)
}

func TestHelloIsRead(t *testing.T) {
	read := func(frame string) (id identity, err error) {
		var d resp.Decoder
		var v resp.Value
		_, err = d.Decode([]byte(frame), &v)
		require.NoError(t, err, frame)
		var dial try
		err = dial.welcomed(&v)
		require.Equal(t, frame[0] == '%', dial.id.resp3)
		dial.id.resp3 = false
		return dial.id, err
	}
	for _, mode := range []string{"standalone", "cluster", "sentinel", "", "else"} {
		for _, role := range []string{"master", "primary", "replica", "slave", "", "else"} {
			_, err := read(scripted.WelcomeOf(mode, role))
			var want error
			switch {
			case mode == "cluster":
				want = ErrCluster
			case mode == "sentinel":
				want = ErrSentinel
			case role != "master" && role != "primary" && role != "":
				want = ErrNotMaster
			}
			assert.Equal(t, want, err, "%s %s", mode, role)
		}
	}
	for frame, want := range map[string]identity{
		"%0\r\n": {},
		"%1\r\n+server\r\n%1\r\n+server\r\n+nested\r\n":                         {},
		"%2\r\n*1\r\n+server\r\n+a\r\n+version\r\n:9\r\n":                       {},
		"*4\r\n+server\r\n+redis\r\n+version\r\n$5\r\n8.0.6\r\n":                {Server: Server{Product: "redis", Version: "8.0.6"}},
		"*3\r\n+server\r\n+redis\r\n+mode\r\n":                                  {Server: Server{Product: "redis"}},
		"%1\r\n|1\r\n+a\r\n+b\r\n+server\r\n|1\r\n+a\r\n+b\r\n$6\r\nvalkey\r\n": {Server: Server{Product: "valkey"}},
		"%2\r\n+server\r\n$3\r\na\tb\r\n+version\r\n_\r\n":                      {},
	} {
		id, err := read(frame)
		require.NoError(t, err, frame)
		assert.Equal(t, want, id, frame)
	}
}

// A server that may drop locks is one to warn of, once for each of its lives.
func TestEvictionIsWarnedOf(t *testing.T) {
	var log testkit.LogSink
	policy := func(name string) func(*scripted.Server) {
		return answers("INFO memory", scripted.InfoOf("maxmemory_policy:"+name+"\r\n"))
	}
	ps := []*scripted.Server{scripted.New(t, policy("allkeys-lru")), scripted.New(t), scripted.New(t, policy(marked)), scripted.New(t, answers("INFO memory", "-NOPERM\r\n"))}
	r := newTestFleet(t, true, ps, func(cfg *Config) { cfg.Logger = log.Logger(slog.LevelWarn) })
	warned := func(want ...int) {
		t.Helper()
		r.up()
		r.dials.Wait() // a warning comes after the connection
		for i, p := range ps {
			assert.Equal(t, want[i], strings.Count(log.String(), "node="+p.Addr+" "), "node %d", i)
		}
	}
	warned(1, 0, 1, 0)
	assert.Contains(t, log.String(), "policy=allkeys-lru")
	assert.Contains(t, log.String(), "policy=unknown")
	assert.NotContains(t, log.String(), marked)
	for i := range r.wires {
		r.wires[i].Cut()
		r.lose(i)
	}
	warned(1, 0, 1, 0)
	r.restartWith(0, func(p *scripted.Server) { p.RunID = "another" })
	warned(2, 0, 1, 0)
}
