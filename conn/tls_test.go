package conn

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// newIdentity makes a certificate for 127.0.0.1 or a name, and who trusts it.
func newIdentity(t *testing.T, name string) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "test"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		BasicConstraintsValid: true,
		IsCA:                  true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		&tls.Config{RootCAs: pool}
}

func newTLSRig(t *testing.T, server, client *tls.Config) *rig {
	t.Helper()
	ps := []*peer{newPeer(t, func(p *peer) { p.tls = server }), newPeer(t)}
	return newRig(t, false, ps, func(cfg *Config) { cfg.TLS = client })
}

func TestTLS(t *testing.T) {
	server, client := newIdentity(t, "127.0.0.1")
	r := newTLSRig(t, server, client)
	r.up()
	assert.False(t, r.CanBlock(), "TLS on one node makes all of them portable")
	r.works()

	sent := r.clog(0, 1<<20) // nobody reads, nobody waits
	r.meanwhile(func() {
		for _, l := range sent {
			r.wires[0].expect(string(l.Buf))
			r.wires[0].send(echoes(l.tags...))
		}
	})
	r.settle(sent...)

	for _, end := range []verb{half, hangUp, cut} {
		l := r.send("first", "second")
		for _, w := range r.wires {
			w.expect(string(l.Buf))
		}
		r.wires[1].send(echoes(l.tags...))
		r.wires[0].play(steps{echoes("first"), end})
		r.settle(l)
		assert.Error(t, l.errOf(0))
		assert.NoError(t, l.errOf(1))
		if end == half { // as TLS has it: an alert, in one read with the reply
			assert.Equal(t, 1, l.nodes[0].replies)
			assert.ErrorIs(t, l.errOf(0), io.ErrUnexpectedEOF)
		}
		r.wires[0] = nil
		r.up()
		r.works()
	}
}

// Closing a clogged connection does not wait for TLS to say goodbye.
func TestCloseOfAClogUnderTLS(t *testing.T) {
	server, client := newIdentity(t, "127.0.0.1")
	r := newTLSRig(t, server, client)
	r.up()
	r.clog(0, 1<<20)
	within(t, "Close", func() { r.do(r.Close) })
	within(t, "Drain", r.Drain)
	_, err := r.wires[0].rest()
	assert.Error(t, err)
}

func TestTLSRefuses(t *testing.T) {
	server, client := newIdentity(t, "127.0.0.1")
	_, stranger := newIdentity(t, "127.0.0.1")
	elsewhere, elsewhereClient := newIdentity(t, "elsewhere.example")
	old := server.Clone()
	old.MaxVersion = tls.VersionTLS11
	careless := client.Clone()
	careless.MinVersion = tls.VersionTLS10
	named := elsewhereClient.Clone()
	named.ServerName = "elsewhere.example"
	for name, test := range map[string]struct {
		server, client *tls.Config
		good           bool
	}{
		"good":              {server, client, true},
		"name given":        {elsewhere, named, true},
		"no roots":          {server, nil, false},
		"another authority": {server, stranger, false},
		"another name":      {elsewhere, elsewhereClient, false},
		"old version":       {old, careless, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTLSRig(t, test.server, test.client)
			r.Settle()
			r.do(func() {
				if test.good {
					assert.NoError(t, r.Fault(0))
				} else {
					assert.ErrorContains(t, r.Fault(0), "tls")
					assert.ErrorIs(t, r.Fault(0), ErrNotSent)
				}
				assert.NoError(t, r.Fault(1))
			})
		})
	}
}

// A server that speaks no TLS does not get our password in the clear.
func TestTLSIsNotDowngraded(t *testing.T) {
	_, client := newIdentity(t, "127.0.0.1")
	p := newPeer(t, func(p *peer) { p.serveRaw = true })
	r := newRig(t, false, []*peer{p}, func(cfg *Config) {
		cfg.TLS = client
		cfg.Addresses[0].TLS = true
		cfg.Addresses[0].login = newLogin("me", marked)
	})
	w := p.next(t)
	hello := make([]byte, 3)
	_, err := io.ReadFull(w, hello)
	require.NoError(t, err)
	assert.Equal(t, []byte{22, 3, 1}, hello, "a ClientHello")
	w.send("-ERR what?\r\n")
	r.Settle()
	r.do(func() { assert.ErrorContains(t, r.Fault(0), "tls") })
}
