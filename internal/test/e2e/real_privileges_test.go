package e2e

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// accessList is the documented minimum for the user of a client.
type accessList struct {
	keys       string   // patterns
	privileges []string // each with its plus
}

// listed finds the access lists in the page for operators, each with its name, if it has one.
var listed = regexp.MustCompile(`(?m)^(\S.*:)?\s*ACL SETUSER locker on >password resetkeys resetchannels -@all((?:\s+~\S+)+)((?:\s+\+\S+)+)$`)

// documented is the access list of a name. The two without one are that with all permissions of locks, "all", and that
// of fenced clients, "fenced". The tests read their permissions there: they are the operators' text.
func documented(name string) accessList {
	text, err := os.ReadFile("../../../conn/OPERATORS.md")
	if err != nil {
		panic(err)
	}
	for _, m := range listed.FindAllStringSubmatch(string(text), -1) {
		found := m[1]
		if found == "" {
			found = "all"
			if strings.Contains(m[2], fenceSet) {
				found = "fenced"
			}
		}
		if found == name {
			return accessList{strings.Join(strings.Fields(m[2]), " ") + " ", strings.Fields(m[3])}
		}
	}
	panic("no access list is documented for " + name)
}

// user is the list as a server reads it.
func (l accessList) user() string {
	return "locker resetchannels resetkeys -@all on >" + realPassword + " " + l.keys + strings.Join(l.privileges, " ")
}

var least = documented("others:")

// servers starts some for clients with the privileges of a list.
func (l accessList) servers(t *testing.T, kind realredis.Kind) (admins cluster.Admins, nodes []string) {
	servers := realredis.StartN(t, 3, realredis.Options{Kind: kind, Users: []string{cluster.AdminUser, l.user()}})
	return cluster.NewAdmins(t, servers), lockers(servers)
}

// withoutEach takes privileges away, one by one, for a check, on servers without a key or a script.
func withoutEach(admins cluster.Admins, privileges []string, check func(privilege string)) {
	for _, privilege := range privileges {
		admins.Must("FLUSHALL", "SCRIPT FLUSH", "ACL SETUSER locker -"+privilege[1:])
		check(privilege)
		admins.Must("ACL SETUSER locker "+privilege, "FLUSHALL")
	}
}

// TestRealLeastPrivileges: the minimum is enough for the whole life of a lock, and each part of it
// is needed; also with waiting allowed.
func TestRealLeastPrivileges(t *testing.T) {
	t.Parallel()
	all := documented("all")
	require.Len(t, slices.Concat(least.privileges, wakePrivileges, queuePrivileges), len(all.privileges))
	require.Subset(t, all.privileges, slices.Concat(least.privileges, wakePrivileges, queuePrivileges))
	for name, list := range map[string]accessList{"others": least, "all": all} {
		t.Run(name, func(t *testing.T) {
			realredis.EachKind(t, func(t *testing.T, kind realredis.Kind) {
				admins, nodes := list.servers(t, kind)
				_, err := cluster.Connect(t, nodes).TryAcquire(t.Context(), "another's", ttl)
				require.ErrorIs(t, err, redlock.ErrNoQuorum)
				requireEachIsNeeded(t, least.privileges, nodes, admins)
			})
		})
	}
}

// requireEachIsNeeded takes privileges away, one by one, and requires that the loss shows: by an error of New or of an
// operation, or by a warning in the log. With all of them nothing shows. A strict quarantine names the missing one.
func requireEachIsNeeded(t *testing.T, privileges, nodes []string, admins cluster.Admins) {
	t.Helper()
	life := func(maxTTL time.Duration) (log string, err error) {
		var sink testkit.LogSink
		cfg := redlock.Config{Nodes: nodes, MaxTTL: maxTTL, NodeTimeout: testkit.Patience, DialTimeout: testkit.Patience, Logger: sink.Logger(slog.LevelWarn)}
		knobs.Of(&cfg).Stragglers = testkit.Patience
		c, err := redlock.New(cfg)
		if err != nil {
			return "", err
		}
		defer c.Close()
		err = wholeLife(t, c, c, admins)
		return sink.String(), err
	}
	requireWhole := func() {
		t.Helper()
		log, err := life(0)
		require.NoError(t, err)
		require.Empty(t, log)
	}
	requireWhole()
	withoutEach(admins, privileges, func(privilege string) {
		switch log, err := life(0); {
		case privilege == "+info":
			require.NoError(t, err)
			require.Equal(t, len(nodes), strings.Count(log, "it has no quarantine after a restart"), log)
			_, err = life(ttl)
			require.ErrorIs(t, err, redlock.ErrConfig)
			require.ErrorIs(t, err, conn.ErrNoRunID)
			require.ErrorContains(t, err, "the command info")
		case !errors.Is(err, redlock.ErrNoQuorum):
			require.ErrorIs(t, err, redlock.ErrConfig, privilege)
			require.ErrorIs(t, err, conn.ErrForbidden, privilege)
		}
	})
	requireWhole()
}

// TestRedis84Privileges: the same for a server with a simulation only. DEL is forbidden there: by
// it a script would take the place of DELEX.
func TestRedis84Privileges(t *testing.T) {
	for _, privilege := range append(documented("Redis 8.4:").privileges, "") {
		servers := cluster.Start(t, 3, fakeredis.Options{Flavor: fakeredis.Redis84})
		for _, s := range servers {
			s.Deny("DEL")
			if privilege != "" {
				s.Deny(privilege[1:])
			}
		}
		var sink testkit.LogSink
		cfg := redlock.Config{Nodes: fakeredis.Addrs(servers), DialTimeout: testkit.Patience, NodeTimeout: testkit.Patience, Logger: sink.Logger(slog.LevelWarn)}
		cluster.MarkPassword(&cfg)
		c, err := redlock.New(cfg)
		if err == nil {
			err = wholeLife(t, c, c, nil)
			require.NoError(t, c.Close())
		}
		require.Equal(t, privilege != "", err != nil || strings.Contains(sink.String(), "no quarantine after a restart"), "%s: %v", privilege, err)
	}
}

// wholeLife has a lock acquired, refused to another, extended and released, with the scripts known and forgotten.
func wholeLife(t *testing.T, ours, theirs *redlock.Client, admins cluster.Admins) error {
	for _, forget := range []bool{false, true, false} {
		if err := wholeOf(t.Context(), ours, "lock:1", ttl, func() error {
			err := refused(t.Context(), theirs, ttl)
			if forget {
				admins.Must("SCRIPT FLUSH")
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// refused requires that "lock:1" is another's.
func refused(ctx context.Context, c *redlock.Client, ttl time.Duration) error {
	if _, err := c.TryAcquire(ctx, "lock:1", ttl); !errors.Is(err, redlock.ErrTaken) {
		return errors.Join(errors.New("not refused"), err)
	}
	return nil
}

// natively is the form for Valkey 9.
const natively = "DELIFEQ, EVALSHA"

// lockers are the addresses of servers, as the user of the clients.
func lockers(servers []*realredis.Server) (nodes []string) {
	for _, s := range servers {
		nodes = append(nodes, "redis://"+lockerLogin+s.Addr())
	}
	return nodes
}

// TestRealNativePrivileges: a server with a native release command releases by it, with no more
// than the documented permissions.
func TestRealNativePrivileges(t *testing.T) {
	t.Parallel()
	list := documented("Valkey 9:")
	admins, nodes := list.servers(t, realredis.Valkey9)
	client := func() *redlock.Client {
		c := cluster.Connect(t, nodes)
		for _, n := range c.Stats().Nodes {
			require.NoError(t, n.Err)
			require.Equal(t, natively, n.Dialect)
			require.Contains(t, n.Server, "valkey 9")
		}
		return c
	}
	require.NoError(t, wholeLife(t, client(), client(), admins))
	cluster.AwaitNothing(t, admins)
	for _, a := range admins {
		calls := a.Text("INFO commandstats")
		require.Regexp(t, `cmdstat_delifeq:calls=[1-9]`, calls)
	}
	requireEachIsNeeded(t, list.privileges, nodes, admins)
}

// wholeOf acquires, extends and releases a key, for a TTL that an extension makes longer.
func wholeOf(ctx context.Context, c *redlock.Client, key string, ttl time.Duration, between func() error) error {
	l, err := c.TryAcquire(ctx, key, ttl/2)
	if err != nil {
		return err
	}
	for _, step := range []func() error{between, func() error { return l.Extend(ctx, ttl) }, between, func() error { return l.Release(ctx) }} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// TestRealFencedPrivileges: the documented ones are enough for the whole life of a fleet and of its locks, and each of
// them is needed. A client learns of a missing one from New, or from the calls that cannot do without it.
func TestRealFencedPrivileges(t *testing.T) {
	t.Parallel()
	list := documented("fenced")
	fencedPrivileges := func(t *testing.T, kind realredis.Kind, privileges []string) {
		admins, nodes := list.servers(t, kind)
		life := func(within time.Duration) error {
			c, err := redlock.New(knobs.With(redlock.Config{Nodes: nodes, Fenced: true, MaxTTL: fenceTTL, NodeTimeout: time.Second}, func(k *knobs.Knobs) { k.TrustRestarts = true; k.Scripted = true }))
			if err != nil {
				return err
			}
			defer c.Close()
			ctx := testkit.Limited(t, within)
			return fencedLife(ctx, c, admins)
		}
		lives := func() {
			testkit.AwaitFor(t, 3*testkit.Patience, "a life that no TTL ends, also on a busy machine", func() bool {
				admins.Must("FLUSHALL", "SCRIPT FLUSH")
				err := life(testkit.Patience)
				if err != nil {
					t.Log(err)
				}
				return err == nil
			})
		}
		lives()
		withoutEach(admins, privileges, func(privilege string) {
			err := life(4 * fenceTTL)
			require.Error(t, err, privilege)
			if privilege != "+zrevrange" { // a quorum votes; only no node comes back
				testkit.Await(t, privilege+" to be the reason", func() bool { // a busy machine may not come so far in time
					known := testkit.IsAny(err, conn.ErrForbidden, conn.ErrNoRunID)
					if !known {
						err = life(8 * fenceTTL)
						require.Error(t, err, privilege)
					}
					return known
				})
			}
		})
		lives()
	}
	realredis.EachKind(t, func(t *testing.T, kind realredis.Kind) {
		for some := range slices.Chunk(list.privileges, (len(list.privileges)+2)/3) { // at the same time: each waits for TTLs
			t.Run(some[0], func(t *testing.T) { t.Parallel(); fencedPrivileges(t, kind, some) })
		}
	})
}

// fencedLife initializes a fleet, has a lock acquired, refused to another, extended and
// released, and has a node forget and come back.
func fencedLife(ctx context.Context, c *redlock.Client, admins cluster.Admins) error {
	if err := c.InitFencing(ctx); err != nil {
		return err
	}
	if err := wholeOf(ctx, c, "lock:1", fenceTTL, func() error { return refused(ctx, c, fenceTTL) }); err != nil {
		return err
	}
	for _, a := range admins {
		a.Must("FLUSHALL")
		for voting := false; !voting; {
			l, err := c.Acquire(ctx, "lock:1", fenceTTL)
			if err != nil {
				return errors.Join(err, cluster.IsReady(c))
			}
			if err := l.Release(ctx); err != nil {
				return err
			}
			voting = strings.Contains(a.Do("ZRANGEBYSCORE redlock:fence -1 -1"), "active:")
		}
	}
	return nil
}
