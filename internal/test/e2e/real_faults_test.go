package e2e

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// outsideAddress is an address of this machine other than loopback's.
func outsideAddress(t *testing.T) string {
	for _, a := range testkit.Must(net.InterfaceAddrs())(t) {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && ip.IP.IsGlobalUnicast() {
			return ip.IP.String()
		}
	}
	t.Skip("skipped: this machine has no address but loopback's")
	return ""
}

// realPassword must never be shown.
const realPassword = "sesame-zzyzx"

// faultyServer is a real server for a test to harm, and to heal.
type faultyServer struct {
	*realredis.Server
	*cluster.Admin
	Node string // its address for a client
}

// serverFault is a fault of a running server, with a cure: a row of the table of TestRealForms.
type serverFault struct {
	options realredis.Options
	login   string // of the clients: "user:password@"
	inject  func(t *testing.T, p *faultyServer)
	heal    func(t *testing.T, p *faultyServer) // nil if the server serves on
	// code is the code of the servers' answers to commands, where no error of a new connection may take their place.
	code string
	// The results of operations when a majority is faulty.
	acquires, extends, releases outcome
	// basic means that it is a fault of connections, or of commands that plain locks use: the forms of these are enough.
	basic bool
	// forgets means that a faulty server loses the keys, and serves on.
	forgets bool
	// doubted means that a server may have forgotten: once it is well, it has no vote for a quarantine.
	doubted bool
	// keeps means that a faulty server does not delete a key as told, and is not asked again.
	keeps bool
	// outside makes clients use another address of the machine than loopback's.
	outside bool
}

// outcome is the results of operations.
type outcome uint8

const (
	fails  outcome = iota
	works          // the fault spares it
	either         // it depends on whether the connections outlive other errors
)

const (
	lockerLogin = "locker:" + realPassword + "@"
	lockerUser  = "locker on >" + realPassword + " ~* +@all"
)

// serverFaults are the rows of the table.
var serverFaults = map[string]serverFault{
	"READONLY": {
		inject:  func(_ *testing.T, p *faultyServer) { p.Must("REPLICAOF 127.0.0.1 1") },
		heal:    func(_ *testing.T, p *faultyServer) { p.Must("REPLICAOF NO ONE") },
		doubted: true,
	},
	"MISCONF": {
		// A directory is where the dump should be.
		inject: func(t *testing.T, p *faultyServer) {
			require.NoError(t, os.RemoveAll(filepath.Join(p.DataDir(), "dump.rdb")))
			require.NoError(t, os.Mkdir(filepath.Join(p.DataDir(), "dump.rdb"), 0o700))
			require.Equal(t, "+OK", p.DoWords("CONFIG", "SET", "save", "3600 1000000"))
			p.saveInBackground(t, "err")
		},
		heal: func(t *testing.T, p *faultyServer) {
			require.NoError(t, os.Remove(filepath.Join(p.DataDir(), "dump.rdb")))
			p.saveInBackground(t, "ok")
		},
		code: "MISCONF",
	},
	"OOM": {
		inject:  func(_ *testing.T, p *faultyServer) { p.Must("CONFIG SET maxmemory 1") },
		heal:    func(_ *testing.T, p *faultyServer) { p.Must("CONFIG SET maxmemory 0") },
		code:    "OOM",
		extends: works, releases: works,
	},
	"NOREPLICAS": {
		inject: func(_ *testing.T, p *faultyServer) { p.Must("CONFIG SET min-replicas-to-write 1") },
		heal:   func(_ *testing.T, p *faultyServer) { p.Must("CONFIG SET min-replicas-to-write 0") },
		code:   "NOREPLICAS",
	},
	"BUSY": {
		options: realredis.Options{Args: []string{"--lua-time-limit", "10"}},
		inject: func(t *testing.T, p *faultyServer) {
			cluster.NewAdmin(t, p.Server).Send(testkit.Encode("EVAL", "while true do end", "0"))
			testkit.Await(t, "the script to run", func() bool { return strings.HasPrefix(p.Do("PING"), "-BUSY") })
		},
		heal: func(_ *testing.T, p *faultyServer) { p.Must("SCRIPT KILL") },
		code: "BUSY",
	},
	"LOADING": {
		options: realredis.Options{Persistent: true, Args: []string{
			"--appendonly", "no", "--rdbcompression", "no", "--loading-process-events-interval-bytes", "1024"}},
		inject: func(t *testing.T, p *faultyServer) {
			p.Must("SELECT 9")
			p.DoWords("EVAL", "for i = 1, 1000 do redis.call('SET', i, string.rep('v', 1024)) end", "0")
			p.Must("SAVE")
			require.NoError(t, p.Boot("--key-load-delay", "20000"))
			p.Admin = cluster.NewAdmin(t, p.Server)
			require.Contains(t, p.DoWords("GET", "k"), "-LOADING")
		},
		heal:    func(_ *testing.T, p *faultyServer) { p.Must("CONFIG SET key-load-delay 0") },
		doubted: true,
	},
	"NOAUTH": {
		// A new access list leaves connections alone, so they are closed.
		inject: func(_ *testing.T, p *faultyServer) { p.Must("CONFIG SET requirepass another"); p.Cut() },
		heal:   func(_ *testing.T, p *faultyServer) { p.DoWords("CONFIG", "SET", "requirepass", "") },
		basic:  true,
	},
	"WRONGPASS": {
		options: realredis.Options{Password: realPassword},
		login:   ":" + realPassword + "@",
		inject:  func(_ *testing.T, p *faultyServer) { p.Must("CONFIG SET requirepass another"); p.Cut() },
		heal:    func(_ *testing.T, p *faultyServer) { p.Must("CONFIG SET requirepass " + realPassword) },
		basic:   true,
	},
	"no such user": {
		options: realredis.Options{Users: []string{lockerUser}},
		login:   lockerLogin,
		inject:  func(t *testing.T, p *faultyServer) { require.Equal(t, ":1", p.DoWords("ACL", "DELUSER", "locker")) },
		heal:    func(_ *testing.T, p *faultyServer) { p.Must("ACL SETUSER " + lockerUser) },
		basic:   true,
	},
	"NOPERM, SET": {
		options: realredis.Options{Users: []string{lockerUser}},
		login:   lockerLogin,
		inject:  func(_ *testing.T, p *faultyServer) { p.Must("ACL SETUSER locker -set") },
		heal:    func(_ *testing.T, p *faultyServer) { p.Must("ACL SETUSER locker +set") },
		extends: either, releases: either,
		basic: true,
	},
	"NOPERM, scripts": {
		options:  realredis.Options{Users: []string{lockerUser}},
		login:    lockerLogin,
		inject:   func(_ *testing.T, p *faultyServer) { p.Must("ACL SETUSER locker -evalsha") },
		heal:     func(_ *testing.T, p *faultyServer) { p.Must("ACL SETUSER locker +evalsha") },
		acquires: either,
		releases: either, // a node that is dialed anew may take its own commands for them
		keeps:    true,
		basic:    true,
	},
	"DENIED": {
		// Protected mode ends where a password begins.
		options: realredis.Options{Password: realPassword, Args: []string{"--protected-mode", "yes"}},
		login:   ":" + realPassword + "@",
		inject:  func(_ *testing.T, p *faultyServer) { p.DoWords("CONFIG", "SET", "requirepass", ""); p.Cut() },
		heal:    func(_ *testing.T, p *faultyServer) { p.Must("CONFIG SET requirepass " + realPassword) },
		outside: true,
		basic:   true,
	},
	"max number of clients": {
		inject: func(_ *testing.T, p *faultyServer) { p.Must("CONFIG SET maxclients 1"); p.Cut() },
		heal:   func(_ *testing.T, p *faultyServer) { p.Must("CONFIG SET maxclients 100") },
		basic:  true,
	},
	"NOPERM": {
		options: realredis.Options{Users: []string{lockerUser}},
		login:   lockerLogin,
		inject:  func(_ *testing.T, p *faultyServer) { p.Must("ACL SETUSER locker -@write -@scripting") },
		heal:    func(_ *testing.T, p *faultyServer) { p.Must("ACL SETUSER locker +@all") },
	},
	"lost keys": {
		inject: func(_ *testing.T, p *faultyServer) {
			p.DoWords("EVAL", "for _, k in ipairs(redis.call('KEYS', 'form*')) do redis.call('DEL', k) end", "0")
		},
		acquires: works, forgets: true,
	},
	"restart": {
		inject: func(t *testing.T, p *faultyServer) {
			require.NoError(t, p.Restart())
			p.Admin = cluster.NewAdmin(t, p.Server)
		},
		forgets: true, doubted: true,
	},
}

// saveInBackground does so, with the given result.
func (p *faultyServer) saveInBackground(t *testing.T, result string) {
	t.Helper()
	require.Contains(t, p.Do("BGSAVE"), "+Background saving started")
	testkit.Await(t, "a dump", func() bool {
		info := p.Text("INFO persistence")
		return strings.Contains(info, "rdb_bgsave_in_progress:0") && strings.Contains(info, "rdb_last_bgsave_status:"+result)
	})
}
