package e2e

import (
	"crypto/tls"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

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
// with trust in another authority. An error of a client without TLS
// shows what the port may be.
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
