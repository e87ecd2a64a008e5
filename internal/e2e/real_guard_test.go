package e2e

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/knobs"
	"github.com/redlock-go/redlock/internal/realredis"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// thin makes a client hold its locks on the first three of five servers alone: it
// cannot reach the others.
func thin(servers []*realredis.Server) func(*redlock.Config) {
	return func(c *redlock.Config) {
		c.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if slices.Contains(cluster.RealAddrs(servers[3:]), addr) {
				return nil, errors.New("out of reach")
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	}
}

// unhurried makes a client leave the processors to others between its attempts.
func unhurried(c *redlock.Config) {
	c.Retry = redlock.Retry{Min: 5 * time.Millisecond, Max: 20 * time.Millisecond}
}

// restartUnder restarts a server, and waits until each client has noticed.
func restartUnder(t *testing.T, servers []*realredis.Server, victim int, clients ...*redlock.Client) {
	t.Helper()
	before := make([]uint64, len(clients))
	for i, c := range clients {
		before[i] = c.Stats().Nodes[victim].Connects
	}
	require.NoError(t, servers[victim].Restart())
	for i, c := range clients {
		testkit.Await(t, "a new connection", func() bool { return c.Stats().Nodes[victim].Connects > before[i] })
	}
}

// refusedUntilOver has clients wait for the lock of another client, which none of
// them may be given before it is over.
func refusedUntilOver(t *testing.T, theirs redlock.Lock, ttl time.Duration, clients ...*redlock.Client) {
	t.Helper()
	key := theirs.Key()
	var waiting []<-chan testkit.Result[redlock.Lock]
	for _, c := range clients {
		waiting = append(waiting, testkit.InBackground(func() (redlock.Lock, error) {
			l, err := c.Acquire(t.Context(), key, ttl)
			if theirs.Remaining() > 0 {
				err = errors.Join(err, errors.New("two hold it"))
			}
			_ = l.Release(context.Background())
			return l, err
		}))
	}
	for _, w := range waiting {
		require.NoError(t, testkit.Get(t, w).Err)
	}
}

// TestRealRestartForgets shows why there is a guard. One of the three servers that
// know of a lock is killed and comes back empty. Who trusts it, or has never seen
// it before, is given the same lock.
func TestRealRestartForgets(t *testing.T) {
	t.Parallel()
	for name, trusting := range map[string]bool{"who trusts it": true, "who comes later": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := realredis.StartN(t, 5)
			ours := cluster.Connect(t, cluster.RealAddrs(servers), thin(servers))
			theirs := func() *redlock.Client {
				return cluster.Connect(t, cluster.RealAddrs(servers), func(c *redlock.Config) { knobs.Of(c).TrustRestarts = trusting })
			}
			other := theirs()
			live(t, other, "another")
			l := cluster.MustAcquire(t, ours, "k", ttl)
			_, err := other.TryAcquire(t.Context(), "k", ttl)
			require.Equal(t, redlock.ErrTaken, err)

			restartUnder(t, servers, 0, other)
			if !trusting {
				other = theirs()
			}
			testkit.Await(t, "a second holder", func() bool {
				_, err := other.TryAcquire(t.Context(), "k", ttl)
				return err == nil
			})
			require.Positive(t, l.Remaining(), "two hold it")
		})
	}
}

// TestRealRestartGuard: a client that has seen the server before, and used a TTL as long,
// refuses its vote until the lock is over, and counts it again by itself then.
func TestRealRestartGuard(t *testing.T) {
	t.Parallel()
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		t.Parallel()
		const brief = 1500 * time.Millisecond
		servers := realredis.StartN(t, 5)
		var heard cluster.GuardRecorder
		ours := cluster.Connect(t, cluster.RealAddrs(servers), thin(servers))
		theirs := cluster.Connect(t, cluster.RealAddrs(servers), cluster.Portable(portable), heard.Of(0), unhurried)
		liveFor(t, theirs, "another", brief)
		l := cluster.MustAcquire(t, ours, "k", brief)

		restartUnder(t, servers, 0, theirs)
		cluster.Told(t, theirs)
		withheld, _ := heard.Take()
		require.Len(t, withheld, 1)
		require.Zero(t, withheld[0].Index)
		require.True(t, withheld[0].Up)
		require.Positive(t, withheld[0].Guarded)
		require.LessOrEqual(t, withheld[0].Guarded, brief+cluster.Drift(brief))
		_, err := theirs.TryAcquire(t.Context(), "k", brief)
		left := theirs.Stats().Nodes[0].Guarded
		require.Less(t, left, withheld[0].Guarded, "it counts down")
		if left > 0 { // or this machine has slept
			require.Error(t, err)
			cluster.Settle(t, theirs)
			cluster.Told(t, theirs)
			_, votes := heard.Take()
			require.Equal(t, map[bool]int{true: 1}, votes, "it was asked all the same")
		}
		refusedUntilOver(t, l, brief, theirs)
		testkit.Await(t, "a vote", func() bool { return theirs.Stats().Nodes[0].Guarded == 0 })
		cluster.Settle(t, theirs)
		cluster.Told(t, theirs)
		heard.Take()

		for range 3 {
			liveFor(t, theirs, "k", brief)
		}
		cluster.Settle(t, theirs) // the other four may have decided before it answered
		cluster.Told(t, theirs)
		withheld, votes := heard.Take()
		require.Empty(t, withheld, "told once")
		require.Equal(t, map[bool]int{false: 6}, votes, "each acquire and extend")
		require.EqualValues(t, 2, theirs.Stats().Nodes[0].Connects, "nothing else brought it back")
	})
}

// TestRealStrictGuard: with Config.MaxTTL the clients that come after the restart
// are safe as well, and those that have not used any TTL.
func TestRealStrictGuard(t *testing.T) {
	t.Parallel()
	const brief = time.Second
	servers := realredis.StartN(t, 5)
	strict := func() *redlock.Client {
		return cluster.Connect(t, cluster.RealAddrs(servers), unhurried, func(c *redlock.Config) { c.MaxTTL = brief })
	}
	early := strict()
	for _, a := range cluster.NewAdmins(t, servers) {
		testkit.Await(t, "all servers to be up for long", func() bool {
			_, after, _ := strings.Cut(a.Text("INFO server"), "uptime_in_seconds:")
			seconds, err := strconv.Atoi(strings.TrimSpace(strings.SplitN(after, "\n", 2)[0]))
			require.NoError(t, err)
			return seconds > 2 // one of them may not be whole
		})
	}
	testkit.Await(t, "all to vote", func() bool {
		return !slices.ContainsFunc(early.Stats().Nodes, func(n redlock.Node) bool { return n.Guarded > 0 })
	})
	for i, n := range strict().Stats().Nodes {
		require.Zero(t, n.Guarded, "node %d was there before", i)
	}

	l := cluster.MustAcquire(t, cluster.Connect(t, cluster.RealAddrs(servers), thin(servers)), "k", brief)
	restartUnder(t, servers, 0, early)
	late := strict()
	for i, n := range late.Stats().Nodes[1:] {
		require.Zero(t, n.Guarded, "node %d was there before", i+1)
	}
	refusedUntilOver(t, l, brief, early, late)
}
