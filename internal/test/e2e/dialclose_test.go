package e2e

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// closingConn is a Dialer's connection with another Close.
type closingConn struct {
	net.Conn
	close func()
}

func (c *closingConn) Close() error {
	defer c.Conn.Close()
	c.close()
	return nil
}

// divertible has a Dialer that dials node 0, from a moment on, at another address, and gives these
// connections another Close.
type divertible struct {
	on     atomic.Bool
	to     string
	close  func()
	closed chan struct{}
}

func divert(to string, close func()) *divertible {
	return &divertible{to: to, close: close, closed: make(chan struct{}, 100)}
}

func (d *divertible) dialer(bad string) func(*redlock.Config) {
	return func(c *redlock.Config) {
		c.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			on := d.on.Load() && addr == bad
			if on {
				addr = d.to
			}
			nc, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil || !on {
				return nc, err
			}
			return &closingConn{nc, func() {
				select {
				case d.closed <- struct{}{}:
				default:
				}
				d.close()
			}}, nil
		}
	}
}

// TestCloseOfARefusedConnectionMayBlock: a new connection is refused, since it leads
// to the server of another node, and its Close blocks. The client goes on.
func TestCloseOfARefusedConnectionMayBlock(t *testing.T) {
	servers := cluster.Start(t, 3)
	nodes := fakeredis.Addrs(servers)
	unblock := make(chan struct{})
	d := divert(nodes[1], func() { <-unblock })
	c := cluster.Connect(t, nodes, d.dialer(nodes[0]))
	t.Cleanup(func() { close(unblock) })
	live(t, c, "k")
	d.on.Store(true)
	servers[0].ResetConns()
	testkit.Get(t, d.closed)
	cluster.Stats(t, c)
	require.NoError(t, testkit.Try(t, "a call", func() error {
		_, err := c.TryAcquire(context.Background(), "k", ttl)
		return err
	}))
}

// TestCloseOfAConnectionMayPanic: Close of a Dialer's connection panics, where the
// handshake has failed or the connection is refused. The client goes on.
func TestCloseOfAConnectionMayPanic(t *testing.T) {
	testkit.Apart(t, func(t *testing.T) {
		for _, name := range []string{"handshake", "refused"} {
			t.Run(name, func(t *testing.T) {
				servers := cluster.Start(t, 3)
				nodes := fakeredis.Addrs(servers)
				to := nodes[1]
				if name == "handshake" {
					to = nodes[0]
				}
				d := divert(to, func() { panic("of Close") })
				c := cluster.Connect(t, nodes, d.dialer(nodes[0]))
				live(t, c, "k")
				d.on.Store(true)
				if name == "handshake" {
					servers[0].RejectConns("ERR max number of clients reached")
				}
				servers[0].ResetConns()
				testkit.Get(t, d.closed)
				live(t, c, "k")
				cluster.Stats(t, c)
				if name == "refused" {
					return // the next dial is seconds later
				}
				testkit.Get(t, d.closed)
				d.on.Store(false)
				require.NoError(t, servers[0].Heal())
				cluster.AwaitNodesUp(t, c, 3)
			})
		}
	})
}

// TestTLSForThatPanicsLeavesNoConnection: the connection below is closed.
func TestTLSForThatPanicsLeavesNoConnection(t *testing.T) {
	nodes := fakeredis.Addrs(cluster.Start(t, 3))
	d := divert(nodes[0], func() {})
	d.on.Store(true)
	bad := nodes[0]
	nodes[0] = "rediss://" + bad
	cluster.Connect(t, nodes, cluster.DefaultTimeouts, d.dialer(bad), func(c *redlock.Config) {
		c.TLSFor = func(string) *tls.Config { panic("of TLSFor") }
	})
	for range 3 {
		testkit.Get(t, d.closed)
	}
}
