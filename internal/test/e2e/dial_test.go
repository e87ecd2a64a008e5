package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
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

// dialCallbacks are the functions called by a client when it dials. Each is set to call f with the
// node's address. A node asked for TLS never comes up: the fakes do not speak it.
var dialCallbacks = map[string]struct {
	scheme  string
	set     func(c *redlock.Config, f func(node string))
	comesUp bool
}{
	"Dialer": {"", func(c *redlock.Config, f func(string)) {
		c.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			f(addr)
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	}, true},
	"Credentials": {"", func(c *redlock.Config, f func(string)) {
		c.Credentials = func(_ context.Context, node string) (string, string, error) {
			f(node)
			return "", os.Getenv(cluster.PasswordEnv), nil
		}
	}, true},
	"TLSFor": {"rediss://", func(c *redlock.Config, f func(string)) {
		c.TLSFor = func(node string) *tls.Config {
			f(node)
			return nil
		}
	}, false},
}

// breaks is how user code may break off. The value of a panic may be a secret.
var breaks = map[string]func(){
	"panics":             func() { panic("a secret") },
	"ends its goroutine": runtime.Goexit,
}

// TestDialMayBreakOff: if a callback of a dial panics, or ends its goroutine, its node is down
// and its error gives the reason. The client goes on with the others, and dials again.
func TestDialMayBreakOff(t *testing.T) {
	testkit.Apart(t, func(t *testing.T) {
		for name, callback := range dialCallbacks {
			for how, breakOff := range breaks {
				t.Run(name+" "+how, func(t *testing.T) {
					nodes := fakeredis.Addrs(cluster.Start(t, 3))
					bad := nodes[0]
					nodes[0] = callback.scheme + bad
					var calm atomic.Bool
					c := cluster.Connect(t, nodes, func(c *redlock.Config) {
						callback.set(c, func(node string) {
							if node == bad && !calm.Load() {
								breakOff()
							}
						})
					})
					for range 5 {
						live(t, c, "k")
					}
					n := cluster.Stats(t, c).Nodes[0]
					require.False(t, n.Up)
					require.ErrorContains(t, n.Err, "while dialing")
					require.NotContains(t, n.Err.Error(), "a secret")
					calm.Store(true)
					if callback.comesUp {
						cluster.AwaitNodesUp(t, c, 3)
					}
					live(t, c, "k")
				})
			}
		}
	})
}

// breakingConn is a connection that breaks off in a Read.
type breakingConn struct {
	net.Conn
	now      *atomic.Bool
	breakOff func()
}

func (b *breakingConn) Read(buf []byte) (int, error) {
	if b.now.Load() {
		b.breakOff()
	}
	return b.Conn.Read(buf)
}

// TestConnectionMayBreakOff: the same of a Dialer's connection that is up.
func TestConnectionMayBreakOff(t *testing.T) {
	testkit.Apart(t, func(t *testing.T) {
		for how, breakOff := range breaks {
			t.Run(how, func(t *testing.T) {
				var now atomic.Bool
				var log testkit.LogSink
				c := cluster.Connect(t, fakeredis.Addrs(cluster.Start(t, 1)), func(c *redlock.Config) {
					c.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
						nc, err := new(net.Dialer).DialContext(ctx, network, addr)
						return &breakingConn{nc, &now, breakOff}, err
					}
					c.Logger = log.Logger(slog.LevelWarn)
				})
				live(t, c, "k")
				now.Store(true)
				_, _ = c.TryAcquire(t.Context(), "k", ttl) // is answered, and read on
				testkit.Await(t, "the end of the connection", func() bool {
					n := c.Stats().Nodes[0]
					return !n.Up && strings.Contains(n.Err.Error(), "while dialing")
				})
				now.Store(false)
				cluster.AwaitNodesUp(t, c, 1)
				cluster.AwaitHooks(t, c)
				require.Contains(t, log.String(), "in the dialer's connection")
				log.RequireNone(t, "a secret")
			})
		}
	})
}

// stubbornConn is a connection whose Read does not end with Close.
type stubbornConn struct {
	net.Conn
	closed func()
}

func (s *stubbornConn) Close() error                     { s.closed(); return nil }
func (s *stubbornConn) SetDeadline(time.Time) error      { return nil }
func (s *stubbornConn) SetReadDeadline(time.Time) error  { return nil }
func (s *stubbornConn) SetWriteDeadline(time.Time) error { return nil }

// TestCloseOfStubbornConnections: Close is bounded, though the connections of a Dialer go on
// reading.
func TestCloseOfStubbornConnections(t *testing.T) {
	var closed atomic.Int64
	c := cluster.Connect(t, fakeredis.Addrs(cluster.Start(t, 3)), func(c *redlock.Config) {
		knobs.Of(c).CloseTimeout = 50 * time.Millisecond
		c.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			nc, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { _ = nc.Close() })
			return &stubbornConn{nc, func() { closed.Add(1) }}, nil
		}
	})
	live(t, c, "k")
	require.NoError(t, testkit.Try(t, "Close", c.Close))
	require.EqualValues(t, 3, closed.Load())
}

// badError is an error with methods that panic.
type badError struct{}

func (badError) Error() string { panic("a secret") }

// TestErrorsOfDialersMayBreakOff: an error of user code has methods, and these are user code too. It
// comes from a Dialer, or from Read of its connection.
func TestErrorsOfDialersMayBreakOff(t *testing.T) {
	testkit.Apart(t, func(t *testing.T) {
		for name, bad := range map[string]struct {
			n   int // bytes, of a Read
			err error
		}{
			"panics":     {0, badError{}},
			"nil inside": {0, (*net.OpError)(nil)},
			"no text":    {0, errors.New("")},
			"less":       {-1, io.EOF},
			"more":       {1 << 20, io.EOF},
		} {
			t.Run(name, func(t *testing.T) {
				var dials, reads atomic.Bool
				c := cluster.Connect(t, fakeredis.Addrs(cluster.Start(t, 1)), func(c *redlock.Config) {
					c.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
						if dials.Load() {
							return nil, bad.err
						}
						nc, err := new(net.Dialer).DialContext(ctx, network, addr)
						return &misreadConn{nc, func() (bool, int, error) { return reads.Load(), bad.n, bad.err }}, err
					}
				})
				live(t, c, "k")
				dials.Store(true)
				reads.Store(true)
				_, _ = c.TryAcquire(t.Context(), "k", ttl)
				testkit.Await(t, "the end of the connection", func() bool { return !cluster.Stats(t, c).Nodes[0].Up })
				dials.Store(false)
				reads.Store(false)
				cluster.AwaitNodesUp(t, c, 1)
				live(t, c, "k")
			})
		}
	})
}

// misreadConn is a connection whose Read returns something else.
type misreadConn struct {
	net.Conn
	read func() (bool, int, error)
}

func (c *misreadConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if bad, n, err := c.read(); bad {
		return n, err
	}
	return n, err
}
