package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// secrets are the parts of passwords, never to be seen.
var secrets = []string{"sesame", "zzyzx"}

// password has parts in need of escaping in a URL.
const (
	password        = "open sesame: zzyzx"
	passwordEscaped = "open%20sesame%3A%20zzyzx"
)

// withPassword returns the addresses of servers, as URLs.
func withPassword(servers fakeredis.Servers, user string) (nodes []string) {
	for _, addr := range fakeredis.Addrs(servers) {
		nodes = append(nodes, "redis://"+user+":"+passwordEscaped+"@"+addr)
	}
	return nodes
}

// TestPasswordIsNeverShown, under any fault of nodes with a password.
func TestPasswordIsNeverShown(t *testing.T) {
	t.Parallel()
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		t.Parallel() // it waits for unhurried dialers
		user := map[bool]string{true: "locker"}[portable]
		var seen testkit.LogSink
		servers := fakeredis.StartN(t, 4, fakeredis.Options{User: user, Password: password})
		r := &cluster.Cluster{Servers: servers}
		var client *redlock.Client
		start := func(timeout, dialTimeout time.Duration) {
			if client != nil {
				require.NoError(t, client.Close())
			}
			var err error
			client, err = redlock.New(knobs.With(redlock.Config{
				Nodes: withPassword(servers, user), Portable: portable,
				NodeTimeout: timeout, DialTimeout: dialTimeout,
				Logger: seen.Logger(slog.LevelDebug),
			}, func(k *knobs.Knobs) { k.CloseTimeout = time.Millisecond }))
			if err != nil { // all nodes refuse us
				require.ErrorIs(t, err, redlock.ErrConfig)
				seen.Add(err)
			}
		}
		harm := func(f func(*fakeredis.Server)) { servers.Each(f) }
		attempts := 0
		attempt := func() error {
			attempts++ // where a connection breaks the key may stay
			l, err := client.TryAcquire(t.Context(), fmt.Sprint("k", attempts), ttl)
			if err == nil {
				seen.Add(l.Key(), l.Remaining())
				err = errors.Join(l.Extend(t.Context(), ttl), l.Release(t.Context()))
			}
			seen.Add(err)
			return err
		}

		start(testkit.Patience, testkit.Patience)
		require.NoError(t, attempt())
		harm(func(s *fakeredis.Server) { s.Set("k2", "another's", 0) })
		require.Equal(t, redlock.ErrTaken, attempt())
		l := cluster.MustAcquire(t, client, "held", ttl)
		for name, f := range map[string]func(*fakeredis.Server){
			"SET fails":     func(s *fakeredis.Server) { s.ErrorReply("SET", "NOAUTH Authentication required.", 1) },
			"SET misfits":   func(s *fakeredis.Server) { s.WrongReply("SET", ":1\r\n", 1) },
			"SET is cut":    func(s *fakeredis.Server) { s.ResetMidReply("SET", 1) },
			"nodes are cut": (*fakeredis.Server).ResetConns,
			"nodes die":     (*fakeredis.Server).Down,
		} {
			harm(f)
			seen.Add(name)
			for range 3 { // while it goes down, and when it is
				_ = attempt()
			}
			seen.Add(l.Extend(t.Context(), ttl))
			r.Heal(t)
			testkit.Await(t, "a quorum", func() bool { return attempt() == nil })
		}

		start(10*time.Millisecond, testkit.Patience)
		harm((*fakeredis.Server).Hang)
		require.ErrorIs(t, attempt(), redlock.ErrNoQuorum)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		_, err := client.Acquire(ctx, "k", ttl)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		cancel()
		seen.Add(err)
		r.Heal(t)

		// Answers that a handshake may get, beside those of TestHandshakeRefuses.
		for name, f := range map[string]func(*fakeredis.Server){
			"HELLO is repeated": func(s *fakeredis.Server) { s.WrongReply("HELLO", "+"+password+"\r\n", 0) },
			"AUTH is unknown": func(s *fakeredis.Server) {
				s.ErrorReply("HELLO", "ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' '"+password+"' ", 0)
				s.ErrorReply("AUTH", "ERR unknown command 'AUTH', with args beginning with: '"+password+"' ", 0)
			},
			"INFO is repeated": func(s *fakeredis.Server) { s.ErrorReply("INFO", "LOADING "+password, 0) },
			"hung":             (*fakeredis.Server).Hang,
		} {
			harm(f)
			seen.Add(name)
			start(10*time.Millisecond, 50*time.Millisecond)
			if client != nil {
				require.ErrorIs(t, attempt(), redlock.ErrNoQuorum, name)
			}
			r.Heal(t)
		}
		start(10*time.Millisecond, testkit.Patience)
		require.NoError(t, client.Close())
		require.Equal(t, redlock.ErrClosed, attempt())
		seen.RequireNone(t, secrets...)
	})
}

// TestAllTestsWithAMarkedPassword runs all tests against fakes once more, with a password on the
// fakes, and searches the whole output and log.
func TestAllTestsWithAMarkedPassword(t *testing.T) {
	if !testkit.Long() || os.Getenv(cluster.PasswordEnv) != "" {
		t.Skip("REDLOCK_LONG=1 runs all tests again")
	}
	tests := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.timeout", "5m", "-test.skip", "^TestReal")
	tests.Env = append(os.Environ(), cluster.PasswordEnv+"=sesame-zzyzx")
	printed, err := tests.CombinedOutput()
	for _, part := range secrets {
		require.NotContains(t, string(printed), part)
	}
	require.Contains(t, string(printed), "redlock: node is down", "what is logged is printed")
	require.NoError(t, err, "%s", printed)
}
