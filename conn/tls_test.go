package conn

import (
	"crypto/tls"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/scripted"
)

func newTLSFleet(t *testing.T, server, client *tls.Config) *testFleet {
	t.Helper()
	ps := []*scripted.Server{scripted.New(t, func(p *scripted.Server) { p.TLS = server }), scripted.New(t)}
	return newTestFleet(t, false, ps, func(cfg *Config) { cfg.TLS = client })
}

// TestClogsUnderTLS: a server that stops reading delays no other, and Close does not wait for TLS to say goodbye.
func TestClogsUnderTLS(t *testing.T) {
	server, client := testkit.NewIdentity(t)
	r := newTLSFleet(t, server, client)
	r.up()
	assert.False(t, r.CanBlock(), "TLS on one node makes all of them portable")
	r.works()
	sent := r.clog(0, 1<<20) // no reader, and no wait
	r.meanwhile(func() {
		for _, l := range sent {
			r.answer(l, 0)
		}
	})
	r.awaitDone(sent...)

	r.clog(0, 1<<20)
	testkit.Within(t, testkit.Patience, "Close", func() { r.do(r.Close) })
	testkit.Within(t, testkit.Patience, "Drain", r.Drain)
	_, err := r.wires[0].Rest()
	assert.Error(t, err)
}

// TestAMissingClientCertificate: only a person mends it, also where the handshake ends well and the alert comes in place
// of the first answer (TLS 1.3).
func TestAMissingClientCertificate(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		server, client := testkit.NewIdentity(t)
		server.ClientAuth, server.MaxVersion = tls.RequireAnyClientCert, version
		r := newTLSFleet(t, server, client)
		r.AwaitFirst(nil, nil)
		r.do(func() {
			require.ErrorIs(t, r.Fault(0), ErrRejected)
			require.True(t, permanent(r.Fault(0)))
			require.NoError(t, r.Fault(1))
		})
	}
}
