// Package e2e has the black-box tests of the client: against fake masters whose faults are switched
// on and off, and against real servers of each kind on this machine (TestReal…).
package e2e

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// ttl is the TTL of locks that last for a whole test.
const ttl = cluster.TTL

func TestMain(m *testing.M) { cluster.Main(m) }

// inLine begins a call of Acquire that has to wait, and returns when the client's lines have so many.
func inLine(t *testing.T, c *redlock.Client, ctx context.Context, key string, place int) <-chan testkit.Result[redlock.Lock] {
	t.Helper()
	waits := testkit.InBackground(func() (redlock.Lock, error) { return c.Acquire(ctx, key, ttl) })
	testkit.Await(t, "in line", func() bool { return c.Stats().InLine == place })
	return waits
}

// locked is the lock that a call has in the end.
func locked(t *testing.T, call <-chan testkit.Result[redlock.Lock]) redlock.Lock {
	t.Helper()
	got := testkit.Get(t, call)
	require.NoError(t, got.Err)
	return got.Value
}

// pair acquires and releases a lock.
func pair(c *redlock.Client, key string, ttl time.Duration) error {
	l, err := c.TryAcquire(context.Background(), key, ttl)
	if err == nil {
		err = l.Release(context.Background())
	}
	return err
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

// inDo begins a call of Do, and returns when its function runs, until it is told to leave.
func inDo(t *testing.T, c *redlock.Client, key string) (leave func(), done <-chan error) {
	t.Helper()
	inside, left := make(chan struct{}), make(chan struct{})
	done = testkit.Start(func() error {
		return c.Do(t.Context(), key, ttl, func(context.Context) error {
			close(inside)
			<-left
			return nil
		})
	})
	testkit.Get(t, inside)
	return func() { close(left) }, done
}

// submitAs runs an Op as another kind.
func submitAs(t *testing.T, c *redlock.Client, op *redlock.Op, kind redlock.OpKind) error {
	t.Helper()
	op.Kind = kind
	return cluster.Submit(t, c, op)
}

// sleeping starts masters and a client. Its machine is found to have slept, for so long, at the reading
// of its clock that left counts down to.
func sleeping(t *testing.T, n int, d time.Duration, change ...func(*redlock.Config)) (r *cluster.Cluster, left *atomic.Int64) {
	t.Helper()
	r, left = &cluster.Cluster{Servers: cluster.Start(t, n), Machine: cluster.NewMachine(t)}, new(atomic.Int64)
	r.Machine.Read = func() {
		if left.Add(-1) == 0 {
			r.Machine.Skip(d)
		}
	}
	r.Client = cluster.ConnectOn(t, r.Machine, fakeredis.Addrs(r.Servers), change...)
	return r, left
}

// userContext is a context of the user's own making: each of its methods calls on, with its name,
// before it answers. It shows none of package context below it.
type userContext struct {
	context.Context
	on func(method string)
}

func (c userContext) Deadline() (time.Time, bool) { c.on("Deadline"); return c.Context.Deadline() }
func (c userContext) Done() <-chan struct{}       { c.on("Done"); return c.Context.Done() }
func (c userContext) Err() error                  { c.on("Err"); return c.Context.Err() }
func (c userContext) Value(any) any               { c.on("Value"); return nil }

// in calls f in one method of a userContext.
func in(method string, f func()) func(string) {
	return func(called string) {
		if called == method {
			f()
		}
	}
}

// userConn is a Dialer's connection with methods of the user's own making.
type userConn struct {
	net.Conn
	read, write func(b []byte) (int, error)
	close       func() error
}

func (c *userConn) Read(b []byte) (int, error) {
	if c.read != nil {
		return c.read(b)
	}
	return c.Conn.Read(b)
}

func (c *userConn) Write(b []byte) (int, error) {
	if c.write != nil {
		return c.write(b)
	}
	return c.Conn.Write(b)
}

func (c *userConn) Close() error {
	if c.close != nil {
		return c.close()
	}
	return c.Conn.Close()
}

// NetConn shows what is below, as a TLS connection does. It is not the client's to close.
func (c *userConn) NetConn() net.Conn { return c.Conn }

// dialing has a client dial connections that wrap changes, by the address of their node.
func dialing(wrap func(addr string, c *userConn)) func(*redlock.Config) {
	return func(cfg *redlock.Config) {
		cfg.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			nc, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			c := &userConn{Conn: nc}
			wrap(addr, c)
			return c, nil
		}
	}
}

// userHandler is a slog.Handler of the user's own making.
type userHandler func()

func (userHandler) Enabled(context.Context, slog.Level) bool    { return true }
func (h userHandler) Handle(context.Context, slog.Record) error { h(); return nil }
func (h userHandler) WithAttrs([]slog.Attr) slog.Handler        { return h }
func (h userHandler) WithGroup(string) slog.Handler             { return h }
