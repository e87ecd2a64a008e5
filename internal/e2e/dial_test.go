package e2e

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/fakeredis"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// dialCallbacks are the functions that a client calls when it dials. Each is set to call f
// with the node's address. A node that is asked for TLS never comes up: the fakes
// do not speak it.
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

// TestDialMayPanic: if a callback of a dial panics, its node is down and tells
// why. The client goes on with the others, and dials again.
func TestDialMayPanic(t *testing.T) {
	testkit.Apart(t, func(t *testing.T) {
		for name, callback := range dialCallbacks {
			t.Run(name, func(t *testing.T) {
				nodes := fakeredis.Addrs(cluster.Start(t, 3))
				bad := nodes[0]
				nodes[0] = callback.scheme + bad
				var calm atomic.Bool
				c := cluster.Connect(t, nodes, cluster.DefaultTimeouts, func(c *redlock.Config) {
					callback.set(c, func(node string) {
						if node == bad && !calm.Load() {
							panic("of " + name)
						}
					})
				})
				for range 5 {
					live(t, c, "k")
				}
				n := cluster.Stats(t, c).Nodes[0]
				require.False(t, n.Up)
				require.Error(t, n.Err)
				calm.Store(true)
				if callback.comesUp {
					cluster.AwaitNodesUp(t, c, 3)
				}
				live(t, c, "k")
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

// TestCloseOfStubbornConnections: Close is bounded, though the connections of a
// Dialer go on reading.
func TestCloseOfStubbornConnections(t *testing.T) {
	var closed atomic.Int64
	c := cluster.Connect(t, fakeredis.Addrs(cluster.Start(t, 3)), func(c *redlock.Config) {
		c.CloseTimeout = 50 * time.Millisecond
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
