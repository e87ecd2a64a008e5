package conn

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/realredis"
	"github.com/redlock-go/redlock/internal/refusal"
	"github.com/redlock-go/redlock/internal/testkit"
)

// The handshake with real servers. Which server that is depends on the
// environment; see package realredis.

// onReal is a fleet whose only node is a real server.
func onReal(t *testing.T, portable bool, server *realredis.Server, set ...func(*Config)) *testFleet {
	t.Helper()
	r := newTestFleet(t, portable, nil, append([]func(*Config){onServer(server)}, set...)...)
	r.AwaitFirstDials()
	return r
}

func TestRealHandshake(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		server := realredis.Start(t)
		r := onReal(t, portable, server, with("", "", 3), func(cfg *Config) { cfg.Name = "app" })
		r.do(func() {
			require.NoError(t, r.Fault(0))
			id := r.nodes[0].id
			assert.Len(t, id.runID, 40)
			assert.Contains(t, []string{"redis", "valkey"}, id.product)
			assert.Regexp(t, `^\d+\.\d+\.\d+$`, id.version)
			assert.Less(t, id.uptime, time.Hour)
			assert.Equal(t, "noeviction", id.policy)
		})
	})
}

func TestRealRoles(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want error
	}{
		"replica": {[]string{"--replicaof", "127.0.0.1 1"}, ErrNotMaster},
		"cluster": {[]string{"--cluster-enabled", "yes", "--cluster-config-file", filepath.Join(t.TempDir(), "nodes.conf")}, ErrCluster},
	} {
		t.Run(name, func(t *testing.T) {
			server := realredis.Start(t, realredis.Options{Args: test.args})
			for _, database := range []int{0, 9} { // of which a cluster has one
				r := onReal(t, false, server, with("", "", database))
				r.do(func() {
					require.ErrorIs(t, r.Fault(0), test.want)
					assert.True(t, Misconfigured(r.Fault(0)))
				})
			}
		})
	}
}

// A sentinel wants a file of its own.
func TestRealSentinel(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	command, err := realredis.Usual.Command()
	if err != nil {
		t.Skip(err)
	}
	server := realredis.Start(t, realredis.Options{Command: append(command, file, "--sentinel")})
	r := onReal(t, false, server, with("", "", 1))
	r.do(func() { assert.ErrorIs(t, r.Fault(0), ErrSentinel) })
}

func TestRealPasswords(t *testing.T) {
	locked := realredis.Start(t, realredis.Options{Password: marked})
	open := realredis.Start(t)
	for _, old := range []bool{false, true} {
		for _, test := range []struct {
			server         *realredis.Server
			user, password string
			want           error
		}{
			{locked, "", marked, nil},
			{locked, "default", marked, nil},
			{locked, "", "", ErrAuth},
			{locked, "", "other", ErrAuth},
			{locked, "me", marked, ErrAuth},
			{open, "", "", nil},
			{open, "default", "", nil},
			{open, "", marked, refusal.ErrImpostor},
			{open, "default", marked, refusal.ErrImpostor},
			{open, "me", marked, ErrAuth},
		} {
			var cfg Config
			onServer(test.server)(&cfg)
			with(test.user, test.password, 0)(&cfg)
			f := &Fleet{cfg: cfg.withDefaults(), ctx: t.Context()}
			nc, _, err := (&dialer{fleet: f, addr: cfg.Addresses[0], old: old}).connect()
			what := fmt.Sprintf("old %t, user %q, password %q", old, test.user, test.password)
			if test.want == nil {
				require.NoError(t, err, what)
				require.NoError(t, nc.Close())
				continue
			}
			require.ErrorIs(t, err, test.want, what)
			assert.Equal(t, test.user+test.password == "", strings.Contains(err.Error(), "NOAUTH"), what)
			assert.NotContains(t, err.Error(), marked, what)
		}
	}
}

// Pushes of a real server reach the owner, between replies of any kind. One that is
// larger than the read buffer is dropped, and the connection goes on.
func TestRealPushes(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		server := realredis.Start(t)
		heard, on := hears(1)
		r := onReal(t, portable, server, on)
		other := testkit.DialText(t, server.Addr())
		large := strings.Repeat("k", 1<<20)
		ask := func(commands ...[]string) *tally {
			count := new(tally)
			b := Batch{Owner: count, Replies: len(commands)}
			for _, args := range commands {
				b.Buf = append(b.Buf, encode(args...)...)
			}
			r.do(func() { r.Send(&b) })
			r.until("for the replies", func() bool { return count.doneCalls > 0 })
			return count
		}
		before := ask([]string{"CLIENT", "TRACKING", "ON", "OPTIN"},
			[]string{"CLIENT", "CACHING", "YES"}, []string{"PTTL", "a"},
			[]string{"CLIENT", "CACHING", "YES"}, []string{"PTTL", large},
			[]string{"CLIENT", "CACHING", "YES"}, []string{"PTTL", "b"})
		require.Equal(t, tally{replies: 7, doneCalls: 1}, *before)
		other.Must("SET a v")
		require.Equal(t, "+OK", other.DoWords("SET", large, "v"))
		other.Must("SET b v")
		r.until("for the pushes", func() bool { return heard.count == 2 })
		require.Equal(t, []string{"a", "b"}, heard.keys[0])
		own := ask([]string{"CLIENT", "CACHING", "YES"}, []string{"MGET", "a", "c", "b"}, []string{"SET", "b", "v"}, []string{"MGET", "a", "b"})
		require.Equal(t, tally{replies: 4, doneCalls: 1}, *own)
		require.Equal(t, []string{"a", "b", "b"}, heard.keys[0])
		r.do(func() { require.EqualValues(t, 1, r.Node(0).Connection) })
		other.Must("FLUSHALL")
		r.until("for the flush", func() bool { return heard.count == 4 })
	})
}

func TestRealCommandsByAnotherName(t *testing.T) {
	server := realredis.Start(t, realredis.Options{Args: []string{"--rename-command", "INFO", "", "--rename-command", "HELLO", ""}})
	r := onReal(t, false, server)
	r.do(func() {
		require.NoError(t, r.Fault(0))
		assert.Empty(t, r.nodes[0].id.runID)
	})
}
