package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
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

		// The answers that a handshake may get.
		for name, f := range map[string]func(*fakeredis.Server){
			"HELLO is refused":  func(s *fakeredis.Server) { s.ErrorReply("HELLO", "WRONGPASS "+password, 0) },
			"HELLO is repeated": func(s *fakeredis.Server) { s.WrongReply("HELLO", "+"+password+"\r\n", 0) },
			"both hang": func(s *fakeredis.Server) {
				s.Inject(fakeredis.Fault{On: "HELLO", Do: fakeredis.Silence})
				s.Inject(fakeredis.Fault{On: "AUTH", Do: fakeredis.Silence})
			},
			"AUTH is unknown": func(s *fakeredis.Server) {
				s.ErrorReply("HELLO", "ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' '"+password+"' ", 0)
				s.ErrorReply("AUTH", "ERR unknown command 'AUTH', with args beginning with: '"+password+"' ", 0)
			},
			"AUTH is repeated": func(s *fakeredis.Server) {
				s.ErrorReply("HELLO", "NOPROTO "+password, 0)
				s.WrongReply("AUTH", "+"+password+"\r\n$3\r\n", 0)
			},
			"AUTH hangs": func(s *fakeredis.Server) {
				s.ErrorReply("HELLO", "ERR unknown command", 0)
				s.Inject(fakeredis.Fault{On: "AUTH", Do: fakeredis.Silence})
			},
			"INFO is repeated": func(s *fakeredis.Server) { s.ErrorReply("INFO", "LOADING "+password, 0) },
			"EVAL is repeated": func(s *fakeredis.Server) { s.ErrorReply("EVAL", "ERR "+password, 0) },
			"no room":          func(s *fakeredis.Server) { s.RejectConns("ERR max number of clients reached") },
			"down":             (*fakeredis.Server).Down,
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

// TestPasswordIsNeverPrinted with its owner: a Config, a Client, and everything with a reference to
// one. The rest of a Config is.
func TestPasswordIsNeverPrinted(t *testing.T) {
	var seen testkit.LogSink
	servers := fakeredis.Servers(fakeredis.StartN(t, 3, fakeredis.Options{Password: password}))
	cfg := redlock.Config{
		Nodes:  withPassword(servers, ""),
		Logger: slog.New(slog.DiscardHandler),
		Name:   "worker",
		TLS:    &tls.Config{ServerName: password},
	}
	c := cluster.Connect(t, cfg.Nodes)
	l := cluster.MustAcquire(t, c, "k", ttl)
	op := &redlock.Op{Kind: redlock.OpExtend, Key: []byte("k"), TTL: ttl}
	op.SetToken(l.Token())
	require.NoError(t, cluster.Submit(t, c, op))
	require.NoError(t, c.Close()) // or printing it would be a race
	type embedding struct{ Locks redlock.Config }
	for _, v := range []any{cfg, &cfg, []redlock.Config{cfg}, embedding{cfg}, &embedding{cfg}, map[int]redlock.Config{1: cfg}, c, l, &l, []redlock.Lock{l}} {
		fmt.Fprintf(&seen, "%v\n%+v\n%#v\n%s\n%q\n%x\n%d\n%v\n", v, v, v, v, v, v, v, v)
	}
	fmt.Fprintf(&seen, "%v\n%+v\n%#v\n%s\n%x\n%d\n", op, op, op, op, op, op)
	seen.Add(cfg, &cfg)
	for _, v := range []any{l, &l, op} {
		seen.Add(v)
		text := testkit.Must(json.Marshal(map[string]any{"v": v}))(t)
		seen.Add(string(text))
	}
	seen.RequireNone(t, secrets...)
	token := l.Token()
	seen.RequireNone(t, token)
	require.Regexp(t, `^lock "k", 4m\S+ left, token digest [0-9a-f]{8}$`, fmt.Sprint(l))
	require.Equal(t, `lock "", 0s left, token digest `, fmt.Sprint(redlock.Lock{}))
	require.Contains(t, fmt.Sprint(op), strings.Fields(fmt.Sprint(l))[6], "the same digest: the same lock")
	for _, text := range []string{fmt.Sprintf("%+v", cfg), fmt.Sprintf("%#v", &cfg)} {
		require.Contains(t, text, cfg.Nodes[0][len(cfg.Nodes[0])-5:], "the port")
		require.Contains(t, text, "Name")
		require.Contains(t, text, "worker")
	}
	cfg.Nodes[0] = "redis://:sesame zzyzx"
	seen.Add(cfg)
	seen.RequireNone(t, secrets...)
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
