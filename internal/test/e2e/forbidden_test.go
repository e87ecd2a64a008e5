package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// forbidden is a key refused by the servers. The other keys begin with "lock:".
const forbidden = "forbidden"

// keyErrors are the possible errors of a script call for one of its keys.
var keyErrors = map[string]string{
	"NOPERM, Valkey": "NOPERM No permissions to access a key",
	"WRONGTYPE":      "WRONGTYPE Operation against a key holding the wrong kind of value",
}

// refuseCalls makes a master refuse each script call with the key.
func refuseCalls(s *fakeredis.Server, text string) {
	s.OnCommand(func(_ int64, args []string) {
		if args[0] == "EVALSHA" && slices.Contains(args, forbidden) {
			s.ErrorReply("EVALSHA", text, 1) // this one
		}
	})
}

// allowLocks is the access list of a user of the other keys only.
func allowLocks(s *fakeredis.Server) { s.AllowKeys("lock:") }

// requireAllWon runs one operation on each lock, and one on the forbidden key, in one batch. It
// heals the masters, and requires success for the locks.
func requireAllWon(t *testing.T, r *cluster.Cluster, kind redlock.OpKind, locks []redlock.Lock) {
	t.Helper()
	unclogged := r.Clog(t)
	var results []<-chan error
	for i, l := range locks {
		if i == len(locks)/2 {
			op := &redlock.Op{Kind: kind, Key: []byte(forbidden), TTL: ttl}
			op.SetToken(l.Token()) // any
			cluster.Begin(t, r.Client, op)
		}
		op := &redlock.Op{Kind: kind, Key: []byte(l.Key()), TTL: 2 * ttl}
		op.SetToken(l.Token())
		results = append(results, cluster.Begin(t, r.Client, op))
	}
	r.Heal(t)
	unclogged()
	for i, result := range results {
		require.NoError(t, testkit.Outcome(t, "an operation", result), locks[i].Key())
	}
}

// awaitNoLock waits until no master has any key but the forbidden one.
func awaitNoLock(t *testing.T, r *cluster.Cluster) {
	t.Helper()
	isLock := func(key string) bool { return strings.HasPrefix(key, "lock:") }
	for i, s := range r.Servers {
		testkit.Await(t, fmt.Sprint("no lock on node ", i), func() bool { return !slices.ContainsFunc(s.Keys(), isLock) })
	}
}

// TestOneKeyRefused: releases and extends in one script call with a refused key are carried out all
// the same, and succeed.
func TestOneKeyRefused(t *testing.T) {
	scripted := true
	run := func(t *testing.T, flavor fakeredis.Flavor, refuse func(*fakeredis.Server)) {
		r := cluster.Of(t, cluster.Start(t, 3, fakeredis.Options{Flavor: flavor}), func(c *redlock.Config) { knobs.Of(c).Scripted = scripted })
		var locks []redlock.Lock // known to all masters
		for i := range 20 {
			l := cluster.MustAcquire(t, r.Client, fmt.Sprint("lock:", i), ttl)
			r.AwaitHolders(t, 3, l.Key())
			locks = append(locks, l)
		}
		r.Servers.Each(refuse)
		requireAllWon(t, r, redlock.OpExtend, locks)
		for _, s := range r.Servers {
			testkit.Await(t, "the longer TTL everywhere", func() bool {
				return !slices.ContainsFunc(locks, func(l redlock.Lock) bool { return s.TTL(l.Key()) <= ttl })
			})
		}
		requireAllWon(t, r, redlock.OpRelease, locks)
		awaitNoLock(t, r)
	}
	for name, text := range keyErrors {
		cluster.Run(t, name, func(t *testing.T) {
			run(t, fakeredis.Redis7, func(s *fakeredis.Server) { refuseCalls(s, text) })
		})
	}
	for _, flavor := range []fakeredis.Flavor{fakeredis.Redis7, fakeredis.Valkey9, fakeredis.Redis84} {
		cluster.Run(t, "access list, "+flavor.String(), func(t *testing.T) { run(t, flavor, allowLocks) })
	}
	cluster.Run(t, "a foreign type", func(t *testing.T) { // is no error
		run(t, fakeredis.Redis7, func(s *fakeredis.Server) { s.Plant(forbidden, "list") })
	})
	scripted = false
	for _, flavor := range []fakeredis.Flavor{fakeredis.Valkey9, fakeredis.Redis84} {
		cluster.Run(t, "native commands alone, "+flavor.String(), func(t *testing.T) {
			run(t, flavor, func(s *fakeredis.Server) { s.Deny("DEL", "SCRIPT"); allowLocks(s) })
		})
	}
}
