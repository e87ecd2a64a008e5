package conn

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/wire/refusal"
)

// The handshake with real servers. Which server that is depends on the
// environment; see package realredis.

func onServer(server *realredis.Server) func(*Config) {
	return func(cfg *Config) {
		cfg.Addresses = []Address{{Network: "tcp", Host: server.Addr()}}
		cfg.Probes = probeAll
	}
}

func TestRealRoles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sentinel.conf") // one of its own
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	command, err := realredis.Usual.Command()
	if err != nil {
		t.Skip(err)
	}
	for name, test := range map[string]struct {
		options realredis.Options
		want    error
	}{
		"replica":  {realredis.Options{Args: []string{"--replicaof", "127.0.0.1 1"}}, ErrNotMaster},
		"cluster":  {realredis.Options{Args: []string{"--cluster-enabled", "yes", "--cluster-config-file", filepath.Join(t.TempDir(), "nodes.conf")}}, ErrCluster},
		"sentinel": {realredis.Options{Command: append(command, file, "--sentinel")}, ErrSentinel},
	} {
		t.Run(name, func(t *testing.T) {
			server := realredis.Start(t, test.options)
			for _, database := range []int{0, 9} { // of which a cluster has one
				r := newTestFleet(t, false, nil, onServer(server), with("", "", database))
				r.AwaitFirst(nil, nil)
				r.do(func() {
					require.ErrorIs(t, r.Fault(0), test.want)
					assert.True(t, classOf(r.Fault(0), misfits) != nil)
				})
			}
		})
	}
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
			d := &dialer{fleet: f, addr: cfg.Addresses[0]}
			d.credentials = func() (login, error) { return d.ask(t.Context()) }
			dial := &try{dialer: d, host: d.addr.Host, old: old, left: f.cfg.DialTimeout}
			err := dial.whole(t.Context())
			what := fmt.Sprintf("old %t, user %q, password %q", old, test.user, test.password)
			if test.want == nil {
				require.NoError(t, err, what)
				require.NoError(t, dial.nc.Close())
				continue
			}
			require.ErrorIs(t, err, test.want, what)
			assert.Equal(t, test.user+test.password == "", strings.Contains(err.Error(), "NOAUTH"), what)
			assert.NotContains(t, err.Error(), marked, what)
		}
	}
}
