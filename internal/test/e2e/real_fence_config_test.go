package e2e

import (
	"context"
	"errors"
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

// TestRealFencedPrivileges: the documented ones are enough for the whole life of a fleet and of its
// locks, and each of them is needed. A client learns of a missing one from New, or from the calls
// that cannot do without it.
func TestRealFencedPrivileges(t *testing.T) {
	t.Parallel()
	realredis.EachKind(t, func(t *testing.T, kind realredis.Kind) {
		list := documented("fenced")
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
		withoutEach(admins, list.privileges, func(privilege string) {
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
	})
}

// fencedLife initializes a fleet, has a lock acquired, refused to another, extended and
// released, and has a node forget and come back.
func fencedLife(ctx context.Context, c *redlock.Client, admins cluster.Admins) error {
	if err := c.InitFencing(ctx); err != nil {
		return err
	}
	l, err := c.TryAcquire(ctx, "lock:1", fenceTTL/2) // an extension then has something to do
	if err != nil {
		return err
	}
	if _, err := c.TryAcquire(ctx, "lock:1", fenceTTL); !errors.Is(err, redlock.ErrTaken) {
		return errors.Join(errors.New("not refused"), err)
	}
	if err := l.Extend(ctx, fenceTTL); err != nil {
		return err
	}
	if err := l.Release(ctx); err != nil {
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

// TestNewNamesUnfencedNodes: one node unable to take part in fencing is an error of New with the
// name of this node alone. Without Fenced it is a node that is down.
func TestNewNamesUnfencedNodes(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, want error, nodes []string, change ...func(*redlock.Config)) {
		t.Helper()
		cfg := redlock.Config{Nodes: nodes, Fenced: true, MaxTTL: fenceTTL, DialTimeout: testkit.Patience}
		knobs.Of(&cfg).Stragglers = testkit.Patience
		for _, f := range change {
			f(&cfg)
		}
		_, err := redlock.New(cfg)
		require.ErrorIs(t, err, redlock.ErrConfig)
		require.ErrorIs(t, err, want)
		require.NotContains(t, err.Error(), strings.TrimPrefix(nodes[0], "redis://"))
		require.ErrorContains(t, err, "fencing: "+strings.TrimSuffix(strings.TrimPrefix(nodes[1], "redis://"), "?persistent=yes"))
		cfg.Fenced = false
		c := testkit.Must(redlock.New(cfg))(t)
		require.NoError(t, c.Close())
	}
	t.Run("forbidden", func(t *testing.T) {
		servers := fakeredis.StartN(t, 3, fakeredis.Options{Flavor: fakeredis.Valkey9})
		servers[1].DenyScripts()
		check(t, conn.ErrForbidden, fakeredis.Addrs(servers))
	})
	t.Run("no run_id", func(t *testing.T) {
		servers := fakeredis.StartN(t, 3, fakeredis.Options{})
		servers[1].Deny("INFO")
		check(t, conn.ErrNoRunID, fakeredis.Addrs(servers), func(c *redlock.Config) { knobs.Of(c).TrustRestarts = true })
		nodes := fakeredis.Addrs(servers)
		nodes[1] = "redis://" + nodes[1] + "?persistent=yes"
		check(t, conn.ErrNoRunID, nodes)
	})
	for _, command := range []string{"EVALSHA", "EVAL", "ZADD", "ZSCORE"} {
		t.Run("real, without "+command, func(t *testing.T) {
			servers := realredis.StartN(t, 3, realredis.Options{}, realredis.Options{Args: []string{"--rename-command", command, ""}}, realredis.Options{})
			if command == "ZADD" { // none of the probes writes
				c := cluster.Connect(t, cluster.RealAddrs(servers), fenced(0))
				testkit.Await(t, "the answer of the node to be the reason", func() bool {
					require.NoError(t, c.InitFencing(t.Context()))
					why := c.Stats().Nodes[1].NoVote
					return why != nil && strings.Contains(why.Error(), "nknown")
				})
				return
			}
			check(t, conn.ErrUnscripted, cluster.RealAddrs(servers))
		})
	}
}
