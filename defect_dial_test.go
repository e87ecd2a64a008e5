package redlock_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/fakeredis"
)

// TestDefectDialPanics: what is asked at a dial may panic. Its node is down, for
// a reason that is told, and the client goes on with the others.
func TestDefectDialPanics(t *testing.T) {
	type asked struct {
		prefix string // of the node's address
		set    func(c *redlock.Config, ask func(node string))
		heals  bool
	}
	for name, a := range map[string]asked{
		"Dialer": {"", func(c *redlock.Config, ask func(string)) {
			c.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				ask(addr)
				return new(net.Dialer).DialContext(ctx, network, addr)
			}
		}, true},
		"Credentials": {"", func(c *redlock.Config, ask func(string)) {
			c.Credentials = func(_ context.Context, node string) (string, string, error) {
				ask(node)
				return "", os.Getenv(marked), nil
			}
		}, true},
		"TLSFor": {"rediss://", func(c *redlock.Config, ask func(string)) {
			c.TLSFor = func(node string) *tls.Config {
				ask(node)
				return nil
			}
		}, false}, // the node speaks no TLS
	} {
		t.Run(name, func(t *testing.T) {
			apart(t, func(t *testing.T) {
				servers := startN(t, 3)
				nodes := fakeredis.Addrs(servers)
				bad := nodes[0]
				nodes[0] = a.prefix + bad
				var calm atomic.Bool
				c := newBound(t, nodes, impatient, func(c *redlock.Config) {
					a.set(c, func(node string) {
						if node == bad && !calm.Load() {
							panic("of " + name)
						}
					})
				})
				for range 5 {
					pair(t, c, "k")
				}
				n := statsOf(t, c).Nodes[0]
				require.False(t, n.Up)
				require.Error(t, n.Err)
				calm.Store(true)
				if a.heals {
					awaitSoon(t, 2*bound, "the node is back", func() bool { return statsOf(t, c).Nodes[0].Up })
				}
				pair(t, c, "k")
			})
		})
	}
}

// panicky is a source of randomness that panics while it is told to.
type panicky struct{ now atomic.Bool }

func (p *panicky) Read(b []byte) (int, error) {
	if p.now.Load() {
		panic("of Rand")
	}
	return rand.Read(b)
}

// TestDefectRandPanics: its caller alone is harmed.
func TestDefectRandPanics(t *testing.T) {
	apart(t, func(t *testing.T) {
		source := &panicky{}
		r := newBoundRig(t, startN(t, 3), func(c *redlock.Config) { c.Rand = source })
		for _, call := range []func() error{
			func() error { _, err := r.TryAcquire(context.Background(), "k", ttl); return err },
			func() error { _, err := r.Acquire(context.Background(), "k", ttl); return err },
			func() error { return r.Submit(noted("k")) },
		} {
			source.now.Store(true)
			require.Error(t, soon(t, "a call", start(call)))
			source.now.Store(false)
			pair(t, r.Client, "behind")
			statsOf(t, r.Client)
		}
	})
}

// stubborn is a connection whose Close does not end its Read.
type stubborn struct {
	net.Conn
	closed func()
}

func (s *stubborn) Close() error                     { s.closed(); return nil }
func (s *stubborn) SetDeadline(time.Time) error      { return nil }
func (s *stubborn) SetReadDeadline(time.Time) error  { return nil }
func (s *stubborn) SetWriteDeadline(time.Time) error { return nil }

// TestDefectCloseOfStubbornConnections: Close keeps its time, though a Dialer's
// connections go on reading.
func TestDefectCloseOfStubbornConnections(t *testing.T) {
	servers := startN(t, 3)
	var closed atomic.Int64
	c := newBound(t, fakeredis.Addrs(servers), func(c *redlock.Config) {
		c.CloseTimeout = 50 * time.Millisecond
		c.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			nc, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { _ = nc.Close() })
			return &stubborn{nc, func() { closed.Add(1) }}, nil
		}
	})
	pair(t, c, "k")
	require.NoError(t, before(t, 50*time.Millisecond+time.Second, "Close", start(c.Close)))
	require.EqualValues(t, 3, closed.Load())
}
