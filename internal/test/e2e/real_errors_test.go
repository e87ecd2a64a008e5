package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
	"github.com/redlock-go/redlock/internal/wire/refusal"
)

// TestRealErrors injects each fault into real servers of each kind. A fault of one server of three costs nothing.
// Faults of two cost what they must, at once, and the errors name the failed nodes. Once they are well all is well.
func TestRealErrors(t *testing.T) {
	t.Parallel()
	realredis.EachKind(t, func(t *testing.T, kind realredis.Kind) {
		t.Parallel()
		for name, s := range serverFaults {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s.run(t, kind)
			})
		}
	})
}

func (s serverFault) run(t *testing.T, kind realredis.Kind) {
	servers := s.start(t, kind)
	var nodes []string
	var admins cluster.Admins
	for _, p := range servers {
		nodes = append(nodes, p.Node)
		admins = append(admins, p.Admin)
	}
	c := cluster.Connect(t, nodes, func(c *redlock.Config) {
		knobs.Of(c).Scripted, knobs.Of(c).TrustRestarts = s.scripted, true // what a node has forgotten is not the fault
	})
	awaitAllVote(t, c, admins)
	held, lost := cluster.MustAcquire(t, c, "held", ttl), cluster.MustAcquire(t, c, "lost", ttl)
	// A lock is acquired at a majority: the fault must not overtake the third SET.
	for _, a := range admins {
		testkit.Await(t, "both locks at every node", func() bool { return a.DoWords("EXISTS", "held", "lost") == ":2" })
	}

	s.inject(t, servers[0])
	for i := range 5 {
		live(t, c, fmt.Sprint("one ", i))
	}
	require.NoError(t, held.Extend(t.Context(), 2*ttl))

	s.inject(t, servers[1])
	var seen testkit.LogSink
	for i := range 5 {
		// Only an extension to a later end writes.
		s.expect(t, &seen, servers, s.extends, held.Extend(t.Context(), time.Duration(3+i)*ttl))
		require.Positive(t, held.Remaining())
		if s.acquires == fails {
			_, err := c.TryAcquire(t.Context(), fmt.Sprint("two ", i), ttl)
			s.expect(t, &seen, servers, fails, err)
		}
	}
	unreleased := lost.Release(t.Context())
	s.expect(t, &seen, servers, s.releases, unreleased)
	if len(s.login) > 0 {
		seen.RequireNone(t, secrets...)
	}

	s.heal(t, servers[1])
	l := testkit.Must(c.Acquire(testkit.Limited(t, 10*time.Second), "healed", ttl))(t) // one of three is still faulty
	require.NoError(t, l.Extend(t.Context(), 2*ttl))
	require.NoError(t, l.Release(t.Context()))

	s.heal(t, servers[0])
	for i, p := range servers {
		admins[i] = p.Admin // a new one if the server was restarted
	}
	awaitAllVote(t, c, admins)
	require.NoError(t, held.Extend(t.Context(), 9*ttl))
	require.NoError(t, held.Release(t.Context()))
	if unreleased != nil {
		// The client has made up for its failed releases, or does so now.
		if err := lost.Release(t.Context()); err != redlock.ErrNotHeld {
			require.NoError(t, err)
		}
	}
	if !s.keeps {
		admins.Must("SELECT 0")
		cluster.AwaitNothing(t, admins)
	}
}

// start starts the servers.
func (s serverFault) start(t *testing.T, kind realredis.Kind) (servers []*faultyServer) {
	s.options.Kind = kind
	s.options.Users = append([]string{cluster.AdminUser}, s.options.Users...)
	host := "127.0.0.1"
	if s.outside {
		host = outsideAddress(t)
		s.options.Args = append([]string{"--bind", "127.0.0.1", host}, s.options.Args...)
	}
	for _, server := range realredis.StartN(t, 3, s.options) {
		_, port, err := net.SplitHostPort(server.Addr())
		require.NoError(t, err)
		servers = append(servers, &faultyServer{server, cluster.NewAdmin(t, server), "redis://" + s.login + net.JoinHostPort(host, port)})
	}
	return servers
}

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

// expect checks the outcome of an operation while two of three are faulty.
func (s serverFault) expect(t *testing.T, seen *testkit.LogSink, servers []*faultyServer, want outcome, err error) {
	t.Helper()
	if want == works || want == either && err == nil {
		require.NoError(t, err)
		return
	}
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	seen.Add(err)
	quorum := testkit.As[*redlock.QuorumError](t, err)
	require.LessOrEqual(t, quorum.Granted, 1, "a faulty node granted it")
	require.Zero(t, quorum.Denied)
	require.Len(t, quorum.Failed, 2)
	for i, failed := range quorum.Failed {
		require.Equal(t, i, failed.Node)
		require.True(t, strings.HasSuffix(servers[i].Node, failed.Addr), failed.Addr)
		require.Error(t, failed.Err)
		if s.code != "" {
			refused := testkit.As[*refusal.ServerError](t, failed.Err)
			require.Equal(t, s.code, refused.Code)
		}
	}
}

// live leads the life of a lock.
func live(t testing.TB, c *redlock.Client, key string) {
	t.Helper()
	liveFor(t, c, key, ttl)
}

// liveFor is live with another TTL.
func liveFor(t testing.TB, c *redlock.Client, key string, ttl time.Duration) {
	t.Helper()
	l := cluster.MustAcquire(t, c, key, ttl)
	require.NoError(t, l.Extend(context.Background(), ttl))
	require.NoError(t, l.Release(context.Background()))
}

// awaitAllVote waits until all nodes of a client grant it a key.
func awaitAllVote(t testing.TB, c *redlock.Client, admins cluster.Admins) {
	t.Helper()
	attempt := 0
	testkit.Await(t, "all nodes to vote", func() bool {
		attempt++
		key := fmt.Sprint("all ", attempt)
		l, err := c.TryAcquire(context.Background(), key, ttl)
		if err != nil {
			return false
		}
		lacks := func(a *cluster.Admin) bool { return a.DoWords("EXISTS", key) != ":1" }
		missing := true
		for i := 0; i < 50 && missing; i++ { // the last of them may be on its way
			time.Sleep(time.Millisecond)
			missing = slices.ContainsFunc(admins, lacks)
		}
		return l.Release(context.Background()) == nil && !missing
	})
}

// realPassword must never be shown.
const realPassword = "sesame-zzyzx"

// faultyServer is a real server for a test to harm, and to heal.
type faultyServer struct {
	*realredis.Server
	*cluster.Admin
	Node string // its address for a client
}

// serverFault is a fault of a running server, with a cure.
type serverFault struct {
	options realredis.Options
	login   string // of the clients: "user:password@"
	inject  func(t *testing.T, p *faultyServer)
	heal    func(t *testing.T, p *faultyServer)
	// code is the code of the servers' answers to commands, where no error of a new connection may take their place.
	code string
	// The results of operations when a majority is faulty.
	acquires, extends, releases outcome
	// keeps means that a faulty server does not delete a key as told, and is not asked again.
	keeps bool
	// outside makes clients use another address of the machine than loopback's.
	outside bool
	// scripted makes them use scripts where servers have commands of their own.
	scripted bool
}

// outcome is the results of operations.
type outcome uint8

const (
	fails  outcome = iota
	works          // the serverFault spares it
	either         // it depends on whether the connections outlive other errors
)

const (
	lockerLogin = "locker:" + realPassword + "@"
	lockerUser  = "locker on >" + realPassword + " ~* +@all"
)

var serverFaults = map[string]serverFault{
	"READONLY": {
		inject: func(_ *testing.T, p *faultyServer) { p.Must("REPLICAOF 127.0.0.1 1") },
		heal:   func(_ *testing.T, p *faultyServer) { p.Must("REPLICAOF NO ONE") },
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
		heal: func(_ *testing.T, p *faultyServer) { p.Must("CONFIG SET key-load-delay 0") },
	},
	"NOAUTH": {
		// A new access list leaves connections alone, so they are closed.
		inject: func(_ *testing.T, p *faultyServer) { p.Must("CONFIG SET requirepass another"); p.Cut() },
		heal:   func(_ *testing.T, p *faultyServer) { p.DoWords("CONFIG", "SET", "requirepass", "") },
	},
	"WRONGPASS": {
		options: realredis.Options{Password: realPassword},
		login:   ":" + realPassword + "@",
		inject:  func(_ *testing.T, p *faultyServer) { p.Must("CONFIG SET requirepass another"); p.Cut() },
		heal:    func(_ *testing.T, p *faultyServer) { p.Must("CONFIG SET requirepass " + realPassword) },
	},
	"no such user": {
		options: realredis.Options{Users: []string{lockerUser}},
		login:   lockerLogin,
		inject:  func(t *testing.T, p *faultyServer) { require.Equal(t, ":1", p.DoWords("ACL", "DELUSER", "locker")) },
		heal:    func(_ *testing.T, p *faultyServer) { p.Must("ACL SETUSER " + lockerUser) },
	},
	"NOPERM, SET": {
		options: realredis.Options{Users: []string{lockerUser}},
		login:   lockerLogin,
		inject:  func(_ *testing.T, p *faultyServer) { p.Must("ACL SETUSER locker -set") },
		heal:    func(_ *testing.T, p *faultyServer) { p.Must("ACL SETUSER locker +set") },
		extends: either, releases: either,
	},
	"NOPERM, scripts": {
		options:  realredis.Options{Users: []string{lockerUser}},
		login:    lockerLogin,
		inject:   func(_ *testing.T, p *faultyServer) { p.Must("ACL SETUSER locker -evalsha") },
		heal:     func(_ *testing.T, p *faultyServer) { p.Must("ACL SETUSER locker +evalsha") },
		acquires: either,
		releases: either, // a node that is dialed anew may take its own commands for them
		keeps:    true,
		scripted: true,
	},
	"DENIED": {
		// Protected mode ends where a password begins.
		options: realredis.Options{Password: realPassword, Args: []string{"--protected-mode", "yes"}},
		login:   ":" + realPassword + "@",
		inject:  func(_ *testing.T, p *faultyServer) { p.DoWords("CONFIG", "SET", "requirepass", ""); p.Cut() },
		heal:    func(_ *testing.T, p *faultyServer) { p.Must("CONFIG SET requirepass " + realPassword) },
		outside: true,
	},
	"max number of clients": {
		inject: func(_ *testing.T, p *faultyServer) { p.Must("CONFIG SET maxclients 1"); p.Cut() },
		heal:   func(_ *testing.T, p *faultyServer) { p.Must("CONFIG SET maxclients 100") },
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
