package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// use is the code of a client's user, which harms keys that begin with "bad", and one node.
type use struct {
	*redlock.Config
	bad    string // the node
	ctx    context.Context
	done   func(*redlock.Op)
	do     func(context.Context) error
	kept   context.Context // of locks kept alive
	isKept atomic.Bool
	lost   func(error)
}

func ofBad(key string, f func()) {
	if strings.HasPrefix(key, "bad") {
		f()
	}
}

// dialed has a method of the bad node's connections call f.
func dialed(set func(c *userConn, f func())) func(u *use, f func()) {
	return func(u *use, f func()) {
		dialing(func(addr string, c *userConn) {
			if addr == u.bad {
				set(c, f)
			}
		})(u.Config)
	}
}

// userCode is where a client calls code of its user: there it calls f.
var userCode = map[string]func(u *use, f func()){
	"context": func(u *use, f func()) {
		var calls atomic.Int64 // of all methods: f is called at another one each time
		u.ctx = userContext{u.ctx, func(string) {
			if calls.Add(1)%3 == 0 {
				f()
			}
		}}
	},
	"Op.Done":                     func(u *use, f func()) { u.done = func(*redlock.Op) { f() } },
	"Do":                          func(u *use, f func()) { u.do = func(context.Context) error { f(); return nil } },
	"AfterFunc of a kept context": func(u *use, f func()) { u.lost = func(error) { f() } },
	"kept context": func(u *use, f func()) {
		u.kept = userContext{u.ctx, func(string) {
			if u.isKept.Load() { // KeepAlive has returned: Err asks
				f()
			}
		}}
	},
	"Hooks.Attempt":         func(u *use, f func()) { u.Hooks.Attempt = func(a redlock.Attempt) { ofBad(a.Key, f) } },
	"Hooks.Acquire":         func(u *use, f func()) { u.Hooks.Acquire = func(a redlock.Acquisition) { ofBad(a.Key, f) } },
	"Hooks.Vote":            func(u *use, f func()) { u.Hooks.Vote = func(redlock.Vote) { f() } },
	"Hooks.NodeUp":          func(u *use, f func()) { u.Hooks.NodeUp = func(redlock.Node) { f() } },
	"Hooks.NodeDown":        func(u *use, f func()) { u.Hooks.NodeDown = func(redlock.Node) { f() } },
	"Hooks.NodeQuarantined": func(u *use, f func()) { u.Hooks.NodeQuarantined = func(redlock.Node) { f() } },
	"Hooks.LockLost":        func(u *use, f func()) { u.Hooks.LockLost = func(key string, _ error) { ofBad(key, f) } },
	"Logger":                func(u *use, f func()) { u.Logger = slog.New(userHandler(f)) },
	"Dialer":                dialed(func(_ *userConn, f func()) { f() }),
	"Conn.Read":             dialed(func(c *userConn, f func()) { c.read = func(b []byte) (int, error) { f(); return c.Conn.Read(b) } }),
	"Conn.Write":            dialed(func(c *userConn, f func()) { c.write = func(b []byte) (int, error) { f(); return c.Conn.Write(b) } }),
	"Conn.Close":            dialed(func(c *userConn, f func()) { c.close = func() error { defer c.Conn.Close(); f(); return nil } }),
	"Credentials": func(u *use, f func()) {
		u.Credentials = func(_ context.Context, node string) (string, string, error) {
			if node == u.bad {
				f()
			}
			return "", os.Getenv(cluster.PasswordEnv), nil
		}
	},
	"TLSFor": func(u *use, f func()) { // only one node has TLS
		client := u.TLS
		u.TLSFor = func(string) *tls.Config { f(); return client }
	},
}

// eachUserCode runs a test for each place of userCode, on three masters.
func eachUserCode(t *testing.T, portables []bool, test func(t *testing.T, place string, b *usersClient)) {
	server, client := testkit.NewIdentity(t)
	for place, set := range userCode {
		for _, portable := range portables {
			t.Run(fmt.Sprint(place, ", portable ", portable), func(t *testing.T) {
				t.Parallel()
				b := &usersClient{t: t, servers: cluster.Start(t, 3), use: &use{ctx: context.Background(), kept: context.Background()}}
				b.done, b.do, b.lost = func(*redlock.Op) {}, func(context.Context) error { return nil }, func(error) {}
				nodes := fakeredis.Addrs(b.servers)
				if place == "TLSFor" {
					b.servers[2] = cluster.Start(t, 1, fakeredis.Options{TLS: server})[0]
					nodes[2] = "rediss://" + b.servers[2].Addr()
				}
				b.connect = func(f func(), change ...func(*redlock.Config)) *redlock.Client {
					return cluster.Connect(t, nodes, append(change, func(c *redlock.Config) {
						c.Portable, c.TLS = portable, client
						b.Config, b.bad = c, b.servers[2].Addr()
						set(b.use, f)
					})...)
				}
				test(t, place, b)
			})
		}
	}
}

// usersClient is a client with code of its user.
type usersClient struct {
	*use
	t       *testing.T
	servers fakeredis.Servers
	connect func(f func(), change ...func(*redlock.Config)) *redlock.Client
}

// everything makes all that calls user code happen, again and again, until it is over. Each call has
// a goroutine: user code may end it, or block. join waits for them.
func (b *usersClient) everything(c *redlock.Client, over func() bool) (join func()) {
	var calls sync.WaitGroup
	call := func(f func()) {
		ended := make(chan struct{})
		calls.Go(func() {
			defer close(ended)
			defer func() { _ = recover() }()
			f()
		})
		testkit.Await(b.t, "a call", func() bool { return testkit.IsClosed(ended) || over() })
	}
	for round := 0; !over(); round++ {
		key := func(what string) string { return fmt.Sprint("bad ", what, round) }
		call(func() {
			if l, err := c.TryAcquire(b.ctx, key("try "), ttl); err == nil {
				_ = l.Extend(b.ctx, ttl)
				b.servers.Del(l.Key())
				_ = l.Release(b.ctx)
			}
		})
		call(func() {
			if l, err := c.Acquire(b.ctx, key("again "), ttl); err == nil {
				_ = l.Release(b.ctx)
			}
		})
		call(func() { b.keepAndLose(c, key("kept "), round%2 == 0) })
		call(func() { _ = c.Do(b.ctx, key("do "), ttl, b.do) })
		call(func() {
			_ = c.Submit(&redlock.Op{Kind: redlock.OpAcquire, Key: []byte(key("op ")), TTL: ttl, Done: b.done})
		})
		s := b.servers[2]
		[]func(){s.Down, func() { _ = s.Heal() }, func() { _ = s.Restart(true) }, func() { // handshakes fail
			s.RejectConns("ERR max number of clients reached")
			s.ResetConns()
		}}[round%4]()
		time.Sleep(5 * time.Millisecond) // the fault lasts
	}
	return func() { testkit.Join(b.t, &calls) }
}

// keepAndLose has a lock kept alive until the keeper finds it gone.
func (b *usersClient) keepAndLose(c *redlock.Client, key string, byContext bool) {
	l, err := c.TryAcquire(context.Background(), key, 50*time.Millisecond)
	if err != nil {
		return
	}
	hasEnded := func() bool { return false }
	if byContext {
		ctx, stop := l.KeepAlive(b.kept)
		hasEnded = func() bool { return ctx.Err() != nil }
		defer stop()
		b.isKept.Store(true)
		defer b.isKept.Store(false)
	} else if cluster.Keep(l, b.lost) != nil {
		return
	}
	b.servers.Del(key)
	testkit.Await(b.t, "the loss", func() bool { return hasEnded() || l.Remaining() == 0 })
	_ = l.Release(context.Background())
}

// TestUserCodeMayAskAndClose: Stats and Ready, and then Close, return wherever
// user code is called, and so does a second Close after them.
func TestUserCodeMayAskAndClose(t *testing.T) {
	t.Parallel()
	eachUserCode(t, []bool{false, true}, func(t *testing.T, place string, b *usersClient) {
		var reached atomic.Bool
		var client atomic.Pointer[redlock.Client]
		closed := make(chan struct{})
		c := b.connect(func() {
			c := client.Load()
			if c == nil || !reached.CompareAndSwap(false, true) {
				return
			}
			c.Stats()
			_ = cluster.IsReady(c)
			_ = c.Close()
			close(closed)
		}, cluster.DefaultTimeouts)
		client.Store(c)
		ended := testkit.Start(func() error { b.everything(c, reached.Load)(); return nil })
		testkit.Await(t, "the calls of user code", func() bool { return testkit.IsClosed(closed) })
		require.NoError(t, testkit.Outcome(t, "the calls of others", ended))
		require.NoError(t, testkit.Try(t, "Close", c.Close))
	})
}

// TestUserCodeMayBreakOff: user code that panics, or ends its goroutine, from New on, harms its own
// call or node and nothing else. A node's error gives the reason, and not the value of the panic, which may be a secret.
func TestUserCodeMayBreakOff(t *testing.T) {
	t.Parallel()
	testkit.Apart(t, func(t *testing.T) {
		for how, breakOff := range map[string]func(){"panics": func() { panic("a secret") }, "ends its goroutine": runtime.Goexit} {
			t.Run(how, func(t *testing.T) {
				eachUserCode(t, []bool{false}, func(t *testing.T, place string, b *usersClient) {
					if place == "AfterFunc of a kept context" {
						t.Skip("its goroutine is not the client's")
					}
					harmsNoOther(t, place, b, 3, breakOff, func(c *redlock.Client, log *testkit.LogSink) {
						if !slices.Contains([]string{"Dialer", "Credentials", "TLSFor", "Conn.Read"}, place) {
							return
						}
						testkit.Await(t, "the reason", func() bool {
							n := cluster.Stats(t, c).Nodes[2]
							return !n.Up && strings.Contains(n.Err.Error(), "while dialing")
						})
						log.RequireNone(t, "a secret")
						require.Equal(t, place == "Conn.Read", strings.Contains(log.String(), "in the dialer's connection"))
					}, func() {})
				})
			})
		}
	})
}

// TestUserCodeMayBlock: the same of user code that does not return. It blocks a few times, since the
// client needs some milliseconds to go on after each.
func TestUserCodeMayBlock(t *testing.T) {
	t.Parallel()
	eachUserCode(t, []bool{false}, func(t *testing.T, place string, b *usersClient) {
		var times atomic.Int64
		unblock := make(chan struct{})
		harmsNoOther(t, place, b, 1, func() {
			if times.Add(1) <= 5 {
				<-unblock
			}
		}, func(*redlock.Client, *testkit.LogSink) {}, sync.OnceFunc(func() { close(unblock) }))
	})
}

// harmsNoOther has user code do harm, at least so often, until it is calmed after a check. Others
// lock, submit and ask meanwhile.
func harmsNoOther(t *testing.T, place string, b *usersClient, least int64, harm func(), check func(*redlock.Client, *testkit.LogSink), calm func()) {
	var log testkit.LogSink
	var harms atomic.Int64
	var isCalm, over atomic.Bool
	isCalm.Store(strings.HasPrefix(place, "Conn.")) // until it is up
	c := b.connect(func() {
		if !isCalm.Load() {
			harms.Add(1)
			harm()
		}
	}, func(c *redlock.Config) { c.Logger, c.DialTimeout = log.Logger(slog.LevelWarn), time.Second })
	isCalm.Store(false)
	t.Cleanup(calm) // before Close
	others := testkit.Start(func() error {
		for i := 0; !over.Load(); i++ {
			if err := wholeOf(context.Background(), c, fmt.Sprint("good ", i), ttl, func() error { return nil }); err != nil {
				return err
			}
			done := make(chan error, 1)
			op := acquireOp(fmt.Sprint("good op ", i))
			op.Done = func(op *redlock.Op) { done <- op.Err() }
			if err := errors.Join(c.Submit(op), testkit.Outcome(t, "another Done", done)); err != nil {
				return err
			}
			c.Stats()
		}
		return nil
	})
	join := b.everything(c, func() bool { return harms.Load() >= least || len(others) > 0 })
	time.Sleep(20 * time.Millisecond) // of the others, beside the harm
	over.Store(true)
	require.NoError(t, testkit.Outcome(t, "the others", others))
	require.NoError(t, b.servers.Heal())
	check(c, &log)
	isCalm.Store(true)
	calm()
	join()
	cluster.AwaitNodesUp(t, c, 3)
	live(t, c, "k")
}

// panickingDone is a Done. Its name must be found in the log.
func panickingDone(*redlock.Op) { panic("a Done that panics") }

// ending is a Handler that ends its goroutine, as t.Fatal does.
type ending struct{ slog.Handler }

func (e ending) Handle(ctx context.Context, r slog.Record) error {
	_ = e.Handler.Handle(ctx, r)
	runtime.Goexit()
	return nil
}

// TestDoneMayPanic: a Done that panics is logged with its stack, also by a logger that ends its goroutine while it reports
// the panic. The client goes on, and can be closed.
func TestDoneMayPanic(t *testing.T) {
	t.Parallel()
	testkit.Apart(t, func(t *testing.T) {
		var log testkit.LogSink
		r := cluster.New(t, 3, func(c *redlock.Config) { c.Logger = slog.New(ending{log.Logger(slog.LevelInfo).Handler()}) })
		const panics = 10
		for i := range panics {
			bad := acquireOp("bad")
			bad.Done = panickingDone
			require.NoError(t, r.Submit(bad))
			require.NoError(t, testkit.Outcome(t, "another Done", cluster.Begin(t, r.Client, acquireOp(fmt.Sprint(i)))))
			live(t, r.Client, "behind")
		}
		testkit.Await(t, "the report of each panic", func() bool {
			text := log.String()
			return strings.Count(text, "level=ERROR") >= panics && strings.Contains(text, "a Done that panics") && strings.Contains(text, "e2e.panickingDone")
		})
		require.NoError(t, testkit.Try(t, "Close", r.Close))
		testkit.Await(t, "no goroutine left", func() bool { return testkit.Goroutines() == "" })
	})
}
