package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// badError is an error with methods that panic.
type badError struct{}

func (badError) Error() string { panic("a secret") }

// TestErrorsOfDialersMayBreakOff: an error of user code has methods, and these are user code too. It
// comes from a Dialer, or from Read of its connection.
func TestErrorsOfDialersMayBreakOff(t *testing.T) {
	t.Parallel()
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

// TestASilentFirstAddress: of a name with two addresses, the first of which answers nothing, the node is up a quarter of
// a second later.
func TestASilentFirstAddress(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		servers := cluster.Start(t, 3)
		m := cluster.NewMachine(t)
		var names []string
		for i, s := range servers {
			_, port, err := net.SplitHostPort(s.Addr())
			require.NoError(t, err)
			m.Link("192.0.2.1:"+port).Hold(true, true)
			names = append(names, fmt.Sprintf("db%d:%s", i, port))
		}
		began := time.Now()
		r := cluster.ConnectOn(t, m, names, cluster.DefaultTimeouts, func(c *redlock.Config) {
			knobs.Of(c).Lookup = func(context.Context, string, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("127.0.0.1")}, nil
			}
		})
		cluster.AwaitNodesUp(t, r, 3)
		require.Less(t, time.Since(began), 300*time.Millisecond)
	})
}

// TestSlowCredentials: a token service may take longer than DialTimeout allows a node. It is asked once for each dial.
func TestSlowCredentials(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		var asked atomic.Int64
		r := cluster.New(t, 3, cluster.DefaultTimeouts, func(c *redlock.Config) {
			c.Credentials = func(ctx context.Context, _ string) (string, string, error) {
				asked.Add(1)
				select {
				case <-time.After(1500 * time.Millisecond):
					return "", os.Getenv(cluster.PasswordEnv), nil
				case <-ctx.Done():
					return "", "", ctx.Err()
				}
			}
		})
		live(t, r.Client, "k")
		require.EqualValues(t, 3, asked.Load())
	})
}

// TestRealUnixSockets: as over TCP, on both paths, with a password too.
func TestRealUnixSockets(t *testing.T) {
	t.Parallel()
	realredis.EachKind(t, func(t *testing.T, kind realredis.Kind) {
		servers := realredis.StartN(t, 3, realredis.Options{Kind: kind, Unix: true, Password: realPassword})
		var nodes []string
		for _, s := range servers {
			nodes = append(nodes, "unix://:"+realPassword+"@"+s.Socket())
		}
		testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
			c := cluster.Connect(t, nodes, cluster.Portable(portable))
			live(t, c, "k")
			require.NoError(t, servers[0].Restart())
			live(t, c, "k")
		})
	})
}

// TestRealTLS: a server shows its certificate and may ask for the client's. New refuses a client without one, and one
// with trust in another authority. An error of a client without TLS shows what the port may be.
func TestRealTLS(t *testing.T) {
	t.Parallel()
	ours, others := testkit.NewAuthority(t), testkit.NewAuthority(t)
	certificate, key := ours.Issue()
	me := testkit.Must(tls.X509KeyPair(certificate, key))(t)
	realredis.EachKind(t, func(t *testing.T, kind realredis.Kind) {
		for name, clientCA := range map[string][]byte{"server shows": nil, "both show": ours.PEM()} {
			t.Run(name, func(t *testing.T) {
				var nodes []string
				for _, s := range realredis.StartN(t, 3, realredis.Options{Kind: kind, Password: realPassword,
					TLS: &realredis.TLS{Certificate: certificate, Key: key, ClientCA: clientCA}}) {
					nodes = append(nodes, "rediss://:"+realPassword+"@"+s.TLSAddr())
				}
				with := func(c *tls.Config) *redlock.Client {
					return cluster.Connect(t, nodes, func(cfg *redlock.Config) { cfg.TLS = c })
				}
				live(t, with(&tls.Config{RootCAs: ours.Pool(), Certificates: []tls.Certificate{me}}), "k")

				var seen testkit.LogSink
				for _, stranger := range []*tls.Config{nil, {RootCAs: others.Pool(), Certificates: []tls.Certificate{me}},
					{RootCAs: ours.Pool(), Certificates: []tls.Certificate{me}, ServerName: "another"}} {
					_, err := redlock.New(redlock.Config{Nodes: nodes, TLS: stranger, DialTimeout: testkit.Patience})
					require.ErrorIs(t, err, redlock.ErrConfig)
					require.ErrorIs(t, err, conn.ErrUntrusted)
					seen.Add(err)
				}
				if clientCA != nil {
					_, err := redlock.New(redlock.Config{Nodes: nodes, TLS: &tls.Config{RootCAs: ours.Pool()}, DialTimeout: testkit.Patience})
					require.ErrorIs(t, err, redlock.ErrConfig)
					require.ErrorIs(t, err, conn.ErrRejected)
					seen.Add(err)
				}
				for i, node := range nodes {
					nodes[i] = strings.Replace(node, "rediss://", "redis://", 1)
				}
				for _, n := range with(nil).Stats().Nodes {
					require.ErrorContains(t, n.Err, "wants TLS (rediss://)")
					seen.Add(n.Err)
				}
				seen.RequireNone(t, secrets...)
			})
		}
	})
}
