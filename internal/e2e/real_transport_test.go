package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/realredis"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// TestRealUnixSockets: as over TCP, on both paths, with a password too.
func TestRealUnixSockets(t *testing.T) {
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

// TestRealTLS: a server shows who it is and may ask who we are. Whoever cannot
// say so, or was told of another authority, gets no lock.
func TestRealTLS(t *testing.T) {
	ours, others := newAuthority(t), newAuthority(t)
	certificate, key := ours.issue(t)
	me, err := tls.X509KeyPair(certificate, key)
	require.NoError(t, err)
	realredis.EachKind(t, func(t *testing.T, kind realredis.Kind) {
		for name, clientCA := range map[string][]byte{"server shows": nil, "both show": ours.pem()} {
			t.Run(name, func(t *testing.T) {
				var nodes []string
				for _, s := range realredis.StartN(t, 3, realredis.Options{Kind: kind, Password: realPassword,
					TLS: &realredis.TLS{Certificate: certificate, Key: key, ClientCA: clientCA}}) {
					nodes = append(nodes, "rediss://:"+realPassword+"@"+s.TLSAddr())
				}
				with := func(c *tls.Config) *redlock.Client {
					return cluster.Connect(t, nodes, func(cfg *redlock.Config) { cfg.TLS = c })
				}
				live(t, with(&tls.Config{RootCAs: ours.pool(), Certificates: []tls.Certificate{me}}), "k")

				strangers := []*tls.Config{nil, {RootCAs: others.pool(), Certificates: []tls.Certificate{me}},
					{RootCAs: ours.pool(), Certificates: []tls.Certificate{me}, ServerName: "another"}}
				if clientCA != nil {
					strangers = append(strangers, &tls.Config{RootCAs: ours.pool()})
				}
				for _, stranger := range strangers {
					var seen testkit.LogSink
					_, err := with(stranger).TryAcquire(t.Context(), "k", ttl)
					require.ErrorIs(t, err, redlock.ErrNoQuorum)
					seen.Add(err)
					seen.RequireNone(t, secrets...)
				}
			})
		}
	})
}

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{certificate, key}
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.certificate)
	return p
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// issue makes a certificate for 127.0.0.1, as a server and as a client, in PEM.
func (a *authority) issue(t *testing.T) (certificate, key []byte) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "node"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, private.Public(), a.key)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}
