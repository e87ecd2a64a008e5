package redlock_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/fakeredis"
	"github.com/redlock-go/redlock/internal/realredis"
)

// natively is how Valkey 9 is asked.
const natively = "DELIFEQ, SET IFEQ"

// lockers are the addresses of servers, as the user of the clients.
func lockers(servers []*realredis.Server) (nodes []string) {
	for _, s := range servers {
		nodes = append(nodes, "redis://"+lockerLogin+s.Addr())
	}
	return nodes
}

// TestRealNativePrivileges: where a server has commands of its own for it, two
// are enough, and no script.
func TestRealNativePrivileges(t *testing.T) {
	t.Parallel()
	const atFirst = leastUser + "+set +delifeq"
	servers := realredis.StartN(t, 3, realredis.Options{Kind: realredis.Valkey9, Users: []string{adminUser, atFirst}})
	admins := newAdmins(t, servers)
	client := func() *redlock.Client {
		c := newClient(t, lockers(servers))
		for _, n := range c.Nodes() {
			require.NoError(t, n.Err)
			require.Equal(t, natively, n.Dialect)
			require.Contains(t, n.Server, "valkey 9")
		}
		return c
	}
	require.NoError(t, wholeLife(t, client(), client(), admins))
	awaitNothing(t, admins)
	for _, a := range admins {
		calls := a.do("INFO", "commandstats")
		require.NotRegexp(t, `cmdstat_evalsha:calls=[1-9]`, calls)
		require.Regexp(t, `cmdstat_delifeq:calls=[1-9]`, calls)
	}
	for _, privilege := range []string{"set", "delifeq"} {
		for _, a := range admins {
			a.must("ACL SETUSER locker -" + privilege)
		}
		c := newClient(t, lockers(servers))
		require.ErrorIs(t, wholeLife(t, c, c, admins), redlock.ErrNoQuorum, privilege)
		for _, a := range admins {
			a.must("ACL SETUSER locker +"+privilege, "FLUSHALL")
		}
	}

	// Who may not use INFO cannot be told of a restart, and does not do for a
	// strict guard.
	const brief = 100 * time.Millisecond
	strict := func() *redlock.Client {
		return newClient(t, lockers(servers), func(c *redlock.Config) { c.MaxTTL = brief })
	}
	for _, n := range strict().Nodes() {
		require.ErrorIs(t, n.Err, conn.ErrNoRunID)
	}
	for _, a := range admins {
		a.must("ACL SETUSER locker +info")
	}
	l, err := strict().Acquire(t.Context(), "lock:1", brief)
	require.NoError(t, err)
	_ = l.Release(t.Context())
}

// TestRealDelIfEqTakenAway: a server that no longer lets us use its own command
// to release is asked by script from there on, and nothing is lost by it; until
// the next connection finds that we may again.
func TestRealDelIfEqTakenAway(t *testing.T) {
	t.Parallel()
	servers := realredis.StartN(t, 3, realredis.Options{Kind: realredis.Valkey9, Users: []string{adminUser, leastUser + "+@all"}})
	admins := newAdmins(t, servers)
	c := newClient(t, lockers(servers))
	speaks := func(d string) bool {
		for _, n := range c.Nodes() {
			if !n.Up || n.Dialect != d {
				return false
			}
		}
		return true
	}
	require.True(t, speaks(natively))
	held := mustAcquire(t, c, "lock:held", ttl)
	done := make(chan struct{})
	var lives atomic.Int64
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for !isClosed(done) {
				if err := wholeOf(c, fmt.Sprint("lock:", g)); err != nil {
					t.Error(err)
					return
				}
				lives.Add(1)
			}
		}()
	}
	goOn := func() {
		before := lives.Load()
		await(t, "progress", func() bool { return lives.Load() > before+20 || t.Failed() })
	}
	goOn()
	for _, a := range admins {
		a.must("ACL SETUSER locker -delifeq")
		goOn()
	}
	close(done)
	wg.Wait()
	require.True(t, speaks("EVALSHA, SET IFEQ"))
	require.NoError(t, held.Extend(t.Context(), ttl))
	require.NoError(t, held.Release(t.Context()))
	awaitNothing(t, admins)
	for _, n := range c.Nodes() {
		require.EqualValues(t, 1, n.Connects)
	}

	for _, a := range admins {
		a.must("ACL SETUSER locker +delifeq")
		a.cut()
	}
	await(t, "the old way", func() bool { return speaks(natively) })
	require.NoError(t, wholeOf(c, "lock:held"))
}

// wholeOf acquires, extends and releases a key.
func wholeOf(c *redlock.Client, key string) error {
	l, err := c.TryAcquire(context.Background(), key, ttl)
	if err != nil {
		return err
	}
	if err := l.Extend(context.Background(), ttl); err != nil {
		return err
	}
	return l.Release(context.Background())
}

// TestRealMixedFleet: one quorum of servers that are asked in different ways, of
// which each does its part.
func TestRealMixedFleet(t *testing.T) {
	t.Parallel()
	var servers []*realredis.Server
	for _, kind := range realredis.Kinds() {
		servers = append(servers, realredis.Start(t, realredis.Options{Kind: kind}))
	}
	newest := fakeredis.StartN(t, 1, fakeredis.Options{Flavor: fakeredis.Redis84})[0]
	nodes, admins := append(realAddrs(servers), newest.Addr()), newAdmins(t, servers)
	onBothPaths(t, func(t *testing.T, portable bool) {
		ours, theirs := newClient(t, nodes, portably(portable)), newClient(t, nodes, portably(!portable))
		require.Equal(t, natively, ours.Nodes()[realredis.Valkey9].Dialect)
		require.Equal(t, "DELEX, SET IFEQ", ours.Nodes()[3].Dialect)
		has := func(least time.Duration) func() bool {
			return func() bool {
				_, all := newest.Get("k")
				for _, a := range admins {
					left, err := strconv.Atoi(strings.TrimPrefix(a.do("PTTL", "k"), ":"))
					all = all && err == nil && time.Duration(left)*time.Millisecond > least
				}
				return all
			}
		}
		for range 3 {
			l := mustAcquire(t, ours, "k", ttl)
			await(t, "the key on all", has(0))
			_, err := theirs.TryAcquire(t.Context(), "k", ttl)
			require.Equal(t, redlock.ErrTaken, err)
			require.NoError(t, l.Extend(t.Context(), 2*ttl))
			await(t, "the new TTL on all", has(ttl))
			require.NoError(t, l.Release(t.Context()))
			awaitNothing(t, admins)
			await(t, "no key on the last", func() bool { return newest.Len() == 0 })
		}

		var wg sync.WaitGroup
		for g := range 32 { // so that scripts are merged
			wg.Add(1)
			go func() {
				defer wg.Done()
				c := []*redlock.Client{ours, theirs}[g%2]
				for i := range 10 {
					if err := wholeOf(c, fmt.Sprint(g, i)); err != nil {
						t.Error(err)
						return
					}
				}
			}()
		}
		wg.Wait()
		awaitNothing(t, admins)
		await(t, "no key on the last", func() bool { return newest.Len() == 0 })
	})
}
