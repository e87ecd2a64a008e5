package e2e

import (
	"context"
	"errors"
	"io"
	"net"
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

// TestCloseOfStubbornConnections: Close is bounded, though the connections of a Dialer go on
// reading.
func TestCloseOfStubbornConnections(t *testing.T) {
	var closed atomic.Int64
	stubborn := dialing(func(_ string, c *userConn) {
		t.Cleanup(func() { _ = c.Conn.Close() })
		c.close = func() error { closed.Add(1); return nil }
		c.deadline = func(time.Time) error { return nil }
	})
	c := cluster.Connect(t, fakeredis.Addrs(cluster.Start(t, 3)), stubborn, func(c *redlock.Config) { knobs.Of(c).CloseTimeout = 50 * time.Millisecond })
	live(t, c, "k")
	require.NoError(t, testkit.Try(t, "Close", c.Close))
	require.EqualValues(t, 3, closed.Load())
}

// TestCloseOfARefusedConnection: a new connection is refused, since it leads to the server of another
// node, and its Close blocks or panics. The client goes on.
func TestCloseOfARefusedConnection(t *testing.T) {
	testkit.Apart(t, func(t *testing.T) {
		unblock := make(chan struct{})
		defer close(unblock)
		for name, closes := range map[string]func(){"blocks": func() { <-unblock }, "panics": func() { panic("of Close") }} {
			t.Run(name, func(t *testing.T) {
				servers := cluster.Start(t, 3)
				var diverted atomic.Bool
				closed := make(chan struct{}, 100)
				divert := func(cfg *redlock.Config) {
					dialing(func(addr string, c *userConn) {
						if addr != servers[0].Addr() || !diverted.Load() {
							return
						}
						_ = c.Conn.Close()
						nc, err := net.Dial("tcp", servers[1].Addr())
						require.NoError(t, err)
						c.Conn = nc
						c.close = func() error {
							defer nc.Close()
							closed <- struct{}{}
							closes()
							return nil
						}
					})(cfg)
				}
				c := cluster.Connect(t, fakeredis.Addrs(servers), divert)
				live(t, c, "k")
				diverted.Store(true)
				servers[0].ResetConns()
				testkit.Get(t, closed)
				cluster.Stats(t, c)
				require.NoError(t, testkit.Try(t, "a call", func() error { return wholeOf(c, "k") }))
			})
		}
	})
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
				var isBad atomic.Bool
				c := cluster.Connect(t, fakeredis.Addrs(cluster.Start(t, 1)), func(cfg *redlock.Config) {
					dialing(func(_ string, c *userConn) {
						c.read = func(b []byte) (int, error) {
							if n, err := c.Conn.Read(b); !isBad.Load() {
								return n, err
							}
							return bad.n, bad.err
						}
					})(cfg)
					dial := cfg.Dialer
					cfg.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
						if isBad.Load() {
							return nil, bad.err
						}
						return dial(ctx, network, addr)
					}
				})
				live(t, c, "k")
				isBad.Store(true)
				_, _ = c.TryAcquire(t.Context(), "k", ttl)
				testkit.Await(t, "the end of the connection", func() bool { return !cluster.Stats(t, c).Nodes[0].Up })
				isBad.Store(false)
				cluster.AwaitNodesUp(t, c, 1)
				live(t, c, "k")
			})
		}
	})
}
