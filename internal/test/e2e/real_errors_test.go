package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
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

// TestRealErrors injects each fault into real servers of each kind. A fault of one server of three
// costs nothing. Faults of two cost what they must, at once, and the errors name the failed nodes.
// Once they are well all is well.
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
	var admins []*cluster.Admin
	for _, p := range servers {
		nodes = append(nodes, p.Node+"?persistent=yes") // a restart is not the fault
		admins = append(admins, p.Admin)
	}
	c := cluster.Connect(t, nodes, func(c *redlock.Config) { knobs.Of(c).Scripted = s.scripted })
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
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	l, err := c.Acquire(ctx, "healed", ttl)
	require.NoError(t, err, "one of three is still faulty")
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
		for _, a := range admins {
			a.Must("SELECT 0")
		}
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
	addresses, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range addresses {
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
	var quorum *redlock.QuorumError
	require.True(t, errors.As(err, &quorum))
	require.LessOrEqual(t, quorum.Granted, 1, "a faulty node granted it")
	require.Zero(t, quorum.Denied)
	require.Len(t, quorum.Failed, 2)
	for i, failed := range quorum.Failed {
		require.Equal(t, i, failed.Node)
		require.True(t, strings.HasSuffix(servers[i].Node, failed.Addr), failed.Addr)
		require.Error(t, failed.Err)
		if s.code != "" {
			var refused *refusal.ServerError
			require.True(t, errors.As(failed.Err, &refused), "%v", failed.Err)
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
func awaitAllVote(t testing.TB, c *redlock.Client, admins []*cluster.Admin) {
	t.Helper()
	attempt := 0
	testkit.Await(t, "all nodes to vote", func() bool {
		attempt++
		key := fmt.Sprint("all ", attempt)
		l, err := c.TryAcquire(context.Background(), key, ttl)
		if err != nil {
			return false
		}
		votes := 0
		for range 50 { // the last of them may be on its way
			votes = 0
			for _, a := range admins {
				if a.DoWords("EXISTS", key) == ":1" {
					votes++
				}
			}
			if votes == len(admins) {
				break
			}
			time.Sleep(time.Millisecond)
		}
		return l.Release(context.Background()) == nil && votes == len(admins)
	})
}
