package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/fakeredis"
	"github.com/redlock-go/redlock/internal/realredis"
)

// evil is the key with which something is wrong. The keys of honest callers
// begin with "lock:".
const evil = "evil"

// keyErrors are the errors that a script call may meet for one of its keys.
var keyErrors = map[string]string{
	"NOPERM, Redis 7":     "NOPERM this user has no permissions to access one of the keys used as arguments",
	"NOPERM, Valkey":      "NOPERM No permissions to access a key",
	"ACL, in the script":  "ERR ACL failure in script: No permissions to access a key script: on @user_script:1.",
	"user, in the script": "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments script: on @user_script:1.",
	"WRONGTYPE":           "WRONGTYPE Operation against a key holding the wrong kind of value",
	"ERR":                 "ERR this proxy does not like one of the keys",
}

// refuseKey makes a master refuse each script call that names evil.
func refuseKey(s *fakeredis.Server, text string) {
	s.OnCommand(func(_ int64, args []string) {
		if args[0] == "EVALSHA" && slices.Contains(args, evil) {
			s.ErrorReply("EVALSHA", text, 1) // this one
		}
	})
}

// TestDefectOneKeyRefused: releases that share a script call with that of a key
// which is refused are carried out all the same, and succeed.
func TestDefectOneKeyRefused(t *testing.T) {
	for name, text := range keyErrors {
		t.Run(name, func(t *testing.T) {
			r := newBoundRig(t, startN(t, 3))
			locks := acquireHonest(t, r, 20)
			for _, s := range r.servers {
				refuseKey(s, text)
			}
			r.releaseWithEvil(t, locks)
			r.awaitNoHonestKey(t)
		})
	}
	t.Run("access list", func(t *testing.T) {
		for _, flavor := range []fakeredis.Flavor{fakeredis.Redis7, fakeredis.Valkey9, fakeredis.Redis84} {
			r := newBoundRig(t, startN(t, 3, fakeredis.Options{Flavor: flavor}), func(c *redlock.Config) { c.Scripted = true })
			locks := acquireHonest(t, r, 20)
			for _, s := range r.servers {
				s.AllowKeys("lock:")
			}
			r.releaseWithEvil(t, locks)
			r.awaitNoHonestKey(t)
		}
	})
	t.Run("a foreign type", func(t *testing.T) { // is no error
		r := newBoundRig(t, startN(t, 3))
		locks := acquireHonest(t, r, 20)
		for _, s := range r.servers {
			s.Plant(evil, "list")
		}
		r.releaseWithEvil(t, locks)
		r.awaitNoHonestKey(t)
	})
}

// TestDefectOneKeyRefusedToExtend: extends are merged too.
func TestDefectOneKeyRefusedToExtend(t *testing.T) {
	r := newBoundRig(t, startN(t, 3))
	locks := acquireHonest(t, r, 20)
	for _, s := range r.servers {
		s.AllowKeys("lock:")
	}
	unclogged := r.clog(t)
	var results []<-chan error
	for i, l := range locks {
		if i == len(locks)/2 {
			submitted(t, r.Client, &redlock.Op{Kind: redlock.OpExtend, Key: []byte(evil), TTL: ttl})
		}
		op := &redlock.Op{Kind: redlock.OpExtend, Key: []byte(l.Key()), TTL: 2 * ttl}
		copy(op.Token[:], l.Token())
		results = append(results, submitted(t, r.Client, op))
	}
	r.heal(t)
	unclogged()
	for i, done := range results {
		require.NoError(t, soon(t, "an extend", done), locks[i].Key())
	}
	for _, s := range r.servers {
		awaitSoon(t, bound, "the longer TTL everywhere", func() bool {
			return !slices.ContainsFunc(locks, func(l redlock.Lock) bool { return s.TTL(l.Key()) <= ttl })
		})
	}
}

// acquireHonest acquires locks and waits until all masters have their keys.
func acquireHonest(t *testing.T, r *rig, n int) (locks []redlock.Lock) {
	t.Helper()
	for i := range n {
		l := mustAcquire(t, r.Client, fmt.Sprint("lock:", i), ttl)
		awaitSoon(t, bound, "on all nodes", func() bool { return r.holders(l.Key()) == len(r.servers) })
		locks = append(locks, l)
	}
	return locks
}

// releaseWithEvil releases locks in one batch with the key that is refused. The
// masters must not have standing faults: it heals them.
func (r *rig) releaseWithEvil(t *testing.T, locks []redlock.Lock) {
	t.Helper()
	unclogged := r.clog(t)
	var results []<-chan error
	for i, l := range locks {
		if i == len(locks)/2 {
			submitted(t, r.Client, &redlock.Op{Kind: redlock.OpRelease, Key: []byte(evil)})
		}
		op := &redlock.Op{Kind: redlock.OpRelease, Key: []byte(l.Key())}
		copy(op.Token[:], l.Token())
		results = append(results, submitted(t, r.Client, op))
	}
	r.heal(t)
	unclogged()
	for i, done := range results {
		require.NoError(t, soon(t, "a release", done), locks[i].Key())
	}
}

// awaitNoHonestKey waits until no master has a key of an honest caller.
func (r *rig) awaitNoHonestKey(t *testing.T) {
	t.Helper()
	isHonest := func(key string) bool { return strings.HasPrefix(key, "lock:") }
	for i, s := range r.servers {
		awaitSoon(t, bound, fmt.Sprint("no honest key on node ", i), func() bool { return !slices.ContainsFunc(s.Keys(), isHonest) })
	}
}

// TestDefectOneKeyRefusedAfterOutage: the releases that a node missed while it
// was away reach it, though one among them is of a key that it refuses.
func TestDefectOneKeyRefusedAfterOutage(t *testing.T) {
	for name, refuse := range map[string]func(*fakeredis.Server){
		"access list": func(s *fakeredis.Server) { s.AllowKeys("lock:") },
		"ERR":         func(s *fakeredis.Server) { refuseKey(s, keyErrors["ERR"]) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newBoundRig(t, startN(t, 3))
			locks := acquireHonest(t, r, 20)
			r.servers[0].Down()
			awaitUpNodes(t, r.Client, 2)
			refuse(r.servers[0])
			for i, l := range locks {
				if i == len(locks)/2 {
					op := &redlock.Op{Kind: redlock.OpRelease, Key: []byte(evil)}
					_ = soon(t, "the release of the refused key", submitted(t, r.Client, op))
				}
				require.NoError(t, l.Release(t.Context()))
			}
			r.heal(t)
			r.awaitNoHonestKey(t)
		})
	}
}

// TestDefectNoReleaseWhereAcquireWasRefused: a node that refuses an acquire for
// its key has no key. If all do, no release follows; one that was away afterwards
// is not given one either.
func TestDefectNoReleaseWhereAcquireWasRefused(t *testing.T) {
	releases := func(e *ear) int { return len(e.all("EVALSHA", evil)) + len(e.all("DELIFEQ", evil)) }
	for _, flavor := range []fakeredis.Flavor{fakeredis.Redis7, fakeredis.Valkey9} {
		t.Run(flavor.String(), func(t *testing.T) {
			t.Run("by all", func(t *testing.T) { // one node: with more the verdict comes before the last vote
				r := newBoundRig(t, startN(t, 1, fakeredis.Options{Flavor: flavor}))
				for _, s := range r.servers {
					s.AllowKeys("lock:")
				}
				for range 10 {
					_, err := r.TryAcquire(t.Context(), evil, ttl)
					require.ErrorIs(t, err, redlock.ErrNoQuorum)
				}
				pair(t, r.Client, "lock:behind")
				quiet(t, r.Client)
				for _, e := range r.heard {
					require.Zero(t, releases(e), "a release of what is not there")
				}
			})
			t.Run("before an outage", func(t *testing.T) {
				r := newBoundRig(t, startN(t, 3, fakeredis.Options{Flavor: flavor}))
				r.servers[0].AllowKeys("lock:")
				for _, s := range r.servers[1:] {
					s.Delay(20 * time.Millisecond) // node 0 answers first
				}
				l := mustAcquire(t, r.Client, evil, ttl)
				r.servers[0].Down()
				awaitUpNodes(t, r.Client, 2)
				require.NoError(t, l.Release(t.Context()))
				require.Zero(t, releases(r.heard[0]))
				r.heal(t)
				awaitUpNodes(t, r.Client, 3)
				pair(t, r.Client, "lock:behind")
				quiet(t, r.Client)
				require.Zero(t, releases(r.heard[0]), "it is owed the release of what it never had")
			})
		})
	}
}

// TestRealDefectForbiddenKey: on real servers with an access list, under load, no
// release of an honest caller fails, and no key stays.
func TestRealDefectForbiddenKey(t *testing.T) {
	realredis.EachKind(t, func(t *testing.T, kind realredis.Kind) {
		servers := realredis.StartN(t, 3, realredis.Options{
			Kind: kind, Users: []string{adminUser, leastUser + strings.Join(leastPrivileges, " ")}})
		admins := newAdmins(t, servers)
		var nodes []string
		for _, s := range servers {
			nodes = append(nodes, "redis://"+lockerLogin+s.Addr())
		}
		c := newBound(t, nodes, func(c *redlock.Config) { c.Scripted = true })
		var failed, released atomic.Int64
		var first atomic.Value
		var wg sync.WaitGroup
		until := time.Now().Add(time.Second)
		for g := range 12 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for i := 0; time.Now().Before(until); i++ {
					if g%4 == 0 {
						_, err := c.TryAcquire(context.Background(), evil, ttl)
						if !errors.Is(err, redlock.ErrNoQuorum) {
							t.Error("not refused:", err)
							return
						}
						op := &redlock.Op{Kind: redlock.OpRelease, Key: []byte(evil), Done: func(*redlock.Op) {}}
						if err := c.Submit(op); err != nil {
							t.Error(err)
							return
						}
						continue
					}
					l, err := c.TryAcquire(context.Background(), fmt.Sprint("lock:", g, "/", i), ttl)
					if err != nil {
						t.Error(err)
						return
					}
					released.Add(1)
					if err := l.Release(context.Background()); err != nil {
						failed.Add(1)
						first.CompareAndSwap(nil, err.Error())
					}
				}
			}()
		}
		ended := start(func() error { wg.Wait(); return nil })
		require.NoError(t, soon(t, "the callers", ended))
		require.Zero(t, failed.Load(), "of %d releases; the first: %v", released.Load(), first.Load())
		require.Positive(t, released.Load())
		for i, a := range admins {
			awaitSoon(t, bound, fmt.Sprint("no key on server ", i), func() bool { return a.do("DBSIZE") == ":0" })
		}
	})
}
