package conn

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// authority signs certificates, or is what pretends to.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert, a.key = a.sign(template("authority", func(c *x509.Certificate) {
		c.IsCA = true
		c.KeyUsage |= x509.KeyUsageCertSign
	}))
	return a
}

// template is a certificate that is valid now, for what set makes it be for.
func template(name string, set ...func(*x509.Certificate)) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		panic(err)
	}
	c := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature,
	}
	for _, f := range set {
		f(c)
	}
	return c
}

// forHosts makes a certificate be for IP addresses and names.
func forHosts(hosts ...string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		for _, host := range hosts {
			if ip := net.ParseIP(host); ip != nil {
				c.IPAddresses = append(c.IPAddresses, ip)
			} else {
				c.DNSNames = append(c.DNSNames, host)
			}
		}
	}
}

// sign makes a certificate of a template; an authority without a certificate of
// its own signs with the new key.
func (a *authority) sign(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	require.NoError(a.t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(a.t, err)
	return cert, key
}

// issue is sign for who presents the certificate, with what leads to it.
func (a *authority) issue(set ...func(*x509.Certificate)) tls.Certificate {
	a.t.Helper()
	cert, key := a.sign(template("test", set...))
	chain := [][]byte{cert.Raw}
	if a.cert != nil {
		chain = append(chain, a.cert.Raw)
	}
	return tls.Certificate{Certificate: chain, PrivateKey: key}
}

// serves is a server with a certificate of this authority.
func (a *authority) serves(set ...func(*x509.Certificate)) *tls.Config {
	a.t.Helper()
	return &tls.Config{Certificates: []tls.Certificate{a.issue(set...)}}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// trusted is a client that knows this authority and no other.
func (a *authority) trusted() *tls.Config { return &tls.Config{RootCAs: a.pool()} }

// newIdentity is a server with a certificate for one host, and who trusts it.
func newIdentity(t *testing.T, host string) (server, client *tls.Config) {
	t.Helper()
	a := newAuthority(t)
	return a.serves(forHosts(host)), a.trusted()
}
