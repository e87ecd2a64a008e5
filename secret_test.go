package redlock_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/fakeredis"
)

// password is what must never be seen. A part of it needs escaping in a URL.
const (
	password        = "open sesame: zzyzx"
	passwordEscaped = "open%20sesame%3A%20zzyzx"
)

// marked is set in the process that runs the tests with a password to look for.
const marked = "REDLOCK_MARKED_PASSWORD"

// startN starts masters, which ask for the marked password if there is one.
func startN(t testing.TB, n int, opts ...fakeredis.Options) []*fakeredis.Server {
	t.Helper()
	if len(opts) == 0 {
		opts = make([]fakeredis.Options, 1)
	}
	for i := range opts {
		opts[i].Password = os.Getenv(marked)
	}
	return fakeredis.StartN(t, n, opts...)
}

// markPassword gives the marked password to nodes that have none, and has all of
// what is logged printed.
func markPassword(cfg *redlock.Config) {
	password := os.Getenv(marked)
	if password == "" {
		return
	}
	nodes := slices.Clone(cfg.Nodes)
	for i, node := range nodes {
		if !strings.Contains(node, "/") && cfg.Credentials == nil {
			nodes[i] = "redis://:" + password + "@" + node
		}
	}
	cfg.Nodes = nodes
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})))
}

// page collects whatever anybody might print or log, clients in the background
// among them.
type page struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *page) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *page) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// add writes values down in every way that package fmt has, with what is
// wrapped in them.
func (p *page) add(values ...any) {
	for _, v := range values {
		fmt.Fprintf(p, "%v\n%+v\n%#v\n%s\n%q\n%d\n%x\n", v, v, v, v, v, v, v)
		slog.New(slog.NewTextHandler(p, nil)).Info("text", "value", v)
		slog.New(slog.NewJSONHandler(p, nil)).Info("json", "value", v)
		if err, ok := v.(error); ok {
			var quorum *redlock.QuorumError
			if errors.As(err, &quorum) {
				for _, f := range quorum.Failed {
					p.add(f, f.Err)
				}
			}
			if next := errors.Unwrap(err); next != nil {
				p.add(next)
			}
		}
	}
}

// check looks for the password, whole or in parts, plain, escaped or in
// hexadecimal digits.
func (p *page) check(t *testing.T) {
	t.Helper()
	text := p.String()
	require.NotEmpty(t, text)
	for _, part := range []string{"sesame", "zzyzx", fmt.Sprintf("%x", "sesame"), strings.Trim(fmt.Sprint([]byte("sesame")), "[]")} {
		if i := strings.Index(text, part); i >= 0 {
			require.Fail(t, "the password shows", text[max(0, i-200):min(len(text), i+200)])
		}
	}
}

// withPassword is the addresses of servers, as URLs.
func withPassword(servers []*fakeredis.Server, user string) (nodes []string) {
	for _, addr := range fakeredis.Addrs(servers) {
		nodes = append(nodes, "redis://"+user+":"+passwordEscaped+"@"+addr)
	}
	return nodes
}

// TestPasswordIsNeverShown, whatever happens to nodes that ask for one.
func TestPasswordIsNeverShown(t *testing.T) {
	t.Parallel()
	onBothPaths(t, func(t *testing.T, portable bool) {
		t.Parallel() // it waits for diallers that are in no hurry
		for _, user := range []string{"", "locker"} {
			var seen page
			servers := fakeredis.StartN(t, 4, fakeredis.Options{User: user, Password: password})
			r := &rig{servers: servers}
			var client *redlock.Client
			start := func(timeout, dialTimeout time.Duration) {
				if client != nil {
					require.NoError(t, client.Close())
				}
				var err error
				client, err = redlock.New(redlock.Config{
					Nodes: withPassword(servers, user), Portable: portable,
					NodeTimeout: timeout, DialTimeout: dialTimeout, CloseTimeout: time.Millisecond,
					Logger: slog.New(slog.NewTextHandler(&seen, &slog.HandlerOptions{Level: slog.LevelDebug})),
				})
				require.NoError(t, err)
			}
			harm := func(f func(*fakeredis.Server)) {
				for _, s := range servers {
					f(s)
				}
			}
			attempts := 0
			attempt := func() error {
				attempts++ // where a connection breaks the key may stay
				l, err := client.TryAcquire(t.Context(), fmt.Sprint("k", attempts), ttl)
				if err == nil {
					seen.add(l.Key(), l.Remaining())
					err = errors.Join(l.Extend(t.Context(), ttl), l.Release(t.Context()))
				}
				seen.add(err)
				return err
			}

			start(patience, patience)
			require.NoError(t, attempt())
			harm(func(s *fakeredis.Server) { s.Set("k2", "another's", 0) })
			require.Equal(t, redlock.ErrTaken, attempt())
			l := mustAcquire(t, client, "held", ttl)
			for name, f := range map[string]func(*fakeredis.Server){
				"SET fails":     func(s *fakeredis.Server) { s.ErrorReply("SET", "NOAUTH Authentication required.", 1) },
				"SET misfits":   func(s *fakeredis.Server) { s.WrongReply("SET", ":1\r\n", 1) },
				"SET is cut":    func(s *fakeredis.Server) { s.ResetMidReply("SET", 1) },
				"nodes are cut": (*fakeredis.Server).ResetConns,
				"nodes die":     (*fakeredis.Server).Down,
			} {
				harm(f)
				seen.add(name)
				for range 3 { // while it goes down, and when it is
					_ = attempt()
				}
				seen.add(l.Extend(t.Context(), ttl))
				r.heal(t)
				await(t, "a quorum", func() bool { return attempt() == nil })
			}

			start(10*time.Millisecond, patience)
			harm((*fakeredis.Server).Hang)
			require.ErrorIs(t, attempt(), redlock.ErrNoQuorum)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			_, err := client.Acquire(ctx, "k", ttl)
			require.Equal(t, context.DeadlineExceeded, err)
			cancel()
			seen.add(err)
			r.heal(t)

			// What a handshake may meet.
			for name, f := range map[string]func(*fakeredis.Server){
				"HELLO is refused":  func(s *fakeredis.Server) { s.ErrorReply("HELLO", "WRONGPASS "+password, 0) },
				"HELLO is repeated": func(s *fakeredis.Server) { s.WrongReply("HELLO", "+"+password+"\r\n", 0) },
				"HELLO hangs":       func(s *fakeredis.Server) { s.Inject(fakeredis.Fault{On: "HELLO", Do: fakeredis.Silence}) },
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
				"INFO is repeated":   func(s *fakeredis.Server) { s.ErrorReply("INFO", "LOADING "+password, 0) },
				"SCRIPT is repeated": func(s *fakeredis.Server) { s.ErrorReply("SCRIPT", "ERR "+password, 0) },
				"no room":            func(s *fakeredis.Server) { s.RejectConns("ERR max number of clients reached") },
				"down":               (*fakeredis.Server).Down,
				"hung":               (*fakeredis.Server).Hang,
			} {
				harm(f)
				seen.add(name)
				start(10*time.Millisecond, 50*time.Millisecond)
				require.ErrorIs(t, attempt(), redlock.ErrNoQuorum)
				r.heal(t)
			}
			require.NoError(t, client.Close())
			require.Equal(t, redlock.ErrClosed, attempt())
			seen.check(t)
		}
	})
}

// TestWrongPasswordIsNeverShown, nor one that is missing or not asked for.
func TestWrongPasswordIsNeverShown(t *testing.T) {
	for _, opts := range []fakeredis.Options{{Password: "another"}, {User: "locker", Password: password}, {}} {
		var seen page
		c, err := redlock.New(redlock.Config{Nodes: withPassword(fakeredis.StartN(t, 3, opts), "")})
		require.NoError(t, err)
		_, err = c.TryAcquire(t.Context(), "k", ttl)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.ErrorContains(t, err, "server refused the credentials")
		require.NoError(t, c.Close())
		seen.add(err)
		seen.check(t)
	}
}

// TestBadURLIsNeverShown: what makes an address unreadable is often a password
// that was not escaped, and then any part of the text may be one.
func TestBadURLIsNeverShown(t *testing.T) {
	var seen page
	for _, node := range []string{
		"redis://:sesame 4711@host", "redis://:sesame/4711@host", "redis://:sesame#4711@host", "redis://:sesame?4711@host",
		"redis://:4711?sesame@host", "redis://:4711#sesame@host", "redis://me:4711?sesame@host", "redis://me:4711#sesame@host",
		"redis://me:4711/sesame@host", "redis://:sesame%zz4711@host", "redis://:se[same]4711@host", "sesame:4711@host",
		"redis:sesame@host:4711", "unix://:sesame@4711", "redis://host/sesame4711", "redis://host?password=sesame",
		"redis://host?sesame", "redis://host?db=sesame", "sesame://host", "redis://[sesame]:4711@host", ":sesame4711@host",
	} {
		c, err := redlock.New(redlock.Config{Nodes: []string{node}, DialTimeout: time.Millisecond})
		require.Error(t, err, node)
		require.Nil(t, c)
		require.NotContains(t, err.Error(), "4711")
		seen.add(err)
	}
	seen.check(t)
}
