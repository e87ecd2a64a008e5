package e2e

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// callingContext is a context whose methods all call a function.
type callingContext struct {
	context.Context
	f func()
}

func (c callingContext) Deadline() (time.Time, bool) { c.f(); return c.Context.Deadline() }
func (c callingContext) Done() <-chan struct{}       { c.f(); return c.Context.Done() }
func (c callingContext) Err() error                  { c.f(); return c.Context.Err() }
func (c callingContext) Value(key any) any           { c.f(); return c.Context.Value(key) }

// callingConn is a Dialer's connection; one of its methods calls a function.
type callingConn struct {
	net.Conn
	method string
	f      func()
}

func (c *callingConn) on(method string) {
	if c.method == method {
		c.f()
	}
}

func (c *callingConn) Read(b []byte) (int, error)  { c.on("Read"); return c.Conn.Read(b) }
func (c *callingConn) Write(b []byte) (int, error) { c.on("Write"); return c.Conn.Write(b) }
func (c *callingConn) Close() error                { c.on("Close"); return c.Conn.Close() }
func (c *callingConn) SetDeadline(t time.Time) error {
	c.on("SetDeadline")
	return c.Conn.SetDeadline(t)
}

// callingRand is a source of tokens that calls a function.
type callingRand func()

func (f callingRand) Read(b []byte) (int, error) { f(); return io.ReadFull(rand.Reader, b) }

func dialing(method string) func(u *use, f func()) {
	return func(c *use, f func()) {
		c.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if method == "" {
				f()
			}
			nc, err := new(net.Dialer).DialContext(ctx, network, addr)
			return &callingConn{nc, method, f}, err
		}
	}
}

// use is a client, with its context and Op.Done.
type use struct {
	*redlock.Config
	ctx    context.Context
	done   func(*redlock.Op)
	do     func(context.Context) error
	kept   context.Context // of locks kept alive
	isKept atomic.Bool
	lost   func(error)
}

// userCode is where a client calls code of its user.
var userCode = map[string]func(c *use, f func()){
	"context":                     func(c *use, f func()) { c.ctx = callingContext{c.ctx, f} },
	"Op.Done":                     func(c *use, f func()) { c.done = func(*redlock.Op) { f() } },
	"Do":                          func(c *use, f func()) { c.do = func(context.Context) error { f(); return nil } },
	"AfterFunc of a kept context": func(c *use, f func()) { c.lost = func(error) { f() } },
	"kept context": func(c *use, f func()) {
		c.kept = callingContext{c.ctx, func() {
			if c.isKept.Load() { // KeepAlive has returned: Err asks
				f()
			}
		}}
	},
	"Hooks.Attempt":         func(c *use, f func()) { c.Hooks.Attempt = func(redlock.Attempt) { f() } },
	"Hooks.Acquire":         func(c *use, f func()) { c.Hooks.Acquire = func(redlock.Acquisition) { f() } },
	"Hooks.Vote":            func(c *use, f func()) { c.Hooks.Vote = func(redlock.Vote) { f() } },
	"Hooks.NodeUp":          func(c *use, f func()) { c.Hooks.NodeUp = func(redlock.Node) { f() } },
	"Hooks.NodeDown":        func(c *use, f func()) { c.Hooks.NodeDown = func(redlock.Node) { f() } },
	"Hooks.NodeQuarantined": func(c *use, f func()) { c.Hooks.NodeQuarantined = func(redlock.Node) { f() } },
	"Hooks.LockLost":        func(c *use, f func()) { c.Hooks.LockLost = func(string, error) { f() } },
	"Logger":                func(c *use, f func()) { c.Logger = slog.New(handler(f)) },
	"Rand":                  func(c *use, f func()) { knobs.Of(c.Config).Rand = callingRand(f) },
	"Dialer":                dialing(""),
	"Conn.Read":             dialing("Read"),
	"Conn.Write":            dialing("Write"),
	"Conn.Close":            dialing("Close"),
	"Credentials": func(c *use, f func()) {
		c.Credentials = func(context.Context, string) (string, string, error) {
			f()
			return "", os.Getenv(cluster.PasswordEnv), nil
		}
	},
	"TLSFor": func(c *use, f func()) {
		client := c.TLS
		c.TLSFor = func(string) *tls.Config { f(); return client }
	},
}

// TestUserCodeMayAskAndClose: Stats and Ready, and then Close, return within their bounds wherever
// user code is called, and so does a second Close after them.
func TestUserCodeMayAskAndClose(t *testing.T) {
	server, tlsConfig := testkit.NewIdentity(t)
	for name, set := range userCode {
		for _, portable := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", portable ", portable), func(t *testing.T) {
				t.Parallel()
				servers := cluster.Start(t, 3)
				nodes := fakeredis.Addrs(servers)
				if name == "TLSFor" {
					servers[2] = cluster.Start(t, 1, fakeredis.Options{TLS: server})[0]
					nodes[2] = "rediss://" + servers[2].Addr()
				}
				reachFrom(t, servers, nodes, func(u *use, f func()) {
					u.Portable, u.TLS = portable, tlsConfig
					set(u, f)
				})
			})
		}
	}
}

// reachFrom has a client call its user code; the first call of it makes the calls.
func reachFrom(t *testing.T, servers fakeredis.Servers, nodes []string, set func(*use, func())) {
	var reached atomic.Bool
	var client atomic.Pointer[redlock.Client]
	closed := make(chan time.Duration, 1)
	f := func() {
		c := client.Load()
		if c == nil || !reached.CompareAndSwap(false, true) {
			return
		}
		c.Stats()
		_ = cluster.IsReady(c)
		began := time.Now()
		_ = c.Close()
		closed <- time.Since(began)
	}
	u := &use{ctx: context.Background(), done: func(*redlock.Op) {}, kept: context.Background()}
	u.do, u.lost = func(context.Context) error { return nil }, func(error) {}
	c := cluster.Connect(t, nodes, cluster.DefaultTimeouts, func(c *redlock.Config) {
		u.Config = c
		set(u, f)
	})
	client.Store(c)

	ended := testkit.Start(func() error { // everything that calls user code, again and again
		for round := 0; !reached.Load(); round++ {
			l, err := c.TryAcquire(u.ctx, fmt.Sprint(round), ttl)
			if err == nil {
				_ = l.Extend(u.ctx, ttl)
				servers.Del(l.Key())
				_ = l.Release(u.ctx)
			}
			if l, err = c.Acquire(u.ctx, fmt.Sprint("again ", round), ttl); err == nil {
				_ = l.Release(u.ctx)
			}
			keepAndLose(t, c, u, servers, fmt.Sprint("kept ", round), round%2 == 0)
			_ = c.Do(u.ctx, fmt.Sprint("do ", round), ttl, u.do)
			_ = c.Submit(&redlock.Op{Kind: redlock.OpAcquire, Key: []byte(fmt.Sprint("op ", round)), TTL: ttl, Done: u.done})
			s := servers[2]
			switch round % 3 {
			case 0:
				s.Down()
			case 1:
				_ = s.Heal()
			case 2:
				_ = s.Restart(true)
			}
			pause := time.Now().Add(5 * time.Millisecond)
			testkit.Await(t, "the fault has lasted", func() bool { return time.Now().After(pause) })
		}
		return nil
	})
	select {
	case took := <-closed:
		require.Less(t, took, 2*time.Second, "CloseTimeout and 500 ms are its bounds")
	case <-time.After(testkit.Promptly):
		require.True(t, reached.Load(), "it was not called")
		require.FailNow(t, "a call from user code hangs")
	}
	require.NoError(t, testkit.Outcome(t, "the calls of others", ended))
	require.NoError(t, testkit.Try(t, "Close", c.Close))
}

// keepAndLose has a lock kept alive until the keeper finds it gone.
func keepAndLose(t *testing.T, c *redlock.Client, u *use, servers fakeredis.Servers, key string, byContext bool) {
	l, err := c.TryAcquire(context.Background(), key, 50*time.Millisecond)
	if err != nil {
		return
	}
	var hasEnded func() bool
	if byContext {
		ctx, stop := l.KeepAlive(u.kept)
		defer stop()
		u.isKept.Store(true)
		defer u.isKept.Store(false)
		hasEnded = func() bool { return ctx.Err() != nil }
	} else {
		lost := make(chan struct{})
		hasEnded = func() bool { return testkit.IsClosed(lost) }
		if cluster.Keep(l, func(err error) { defer close(lost); u.lost(err) }) != nil {
			return
		}
	}
	servers.Del(key)
	testkit.Await(t, "the loss", func() bool { return hasEnded() || l.Remaining() == 0 })
	_ = l.Release(context.Background())
}
