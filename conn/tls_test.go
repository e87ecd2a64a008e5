package conn

import (
	"crypto/tls"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/scripted"
)

func newTLSFleet(t *testing.T, server, client *tls.Config) *testFleet {
	t.Helper()
	ps := []*scripted.Server{scripted.New(t), scripted.New(t, func(p *scripted.Server) { p.TLS = server })}
	return newTestFleet(t, false, ps, func(cfg *Config) { cfg.TLS = client })
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
			require.ErrorIs(t, r.Fault(1), ErrRejected)
			require.True(t, permanent(r.Fault(1)))
			require.NoError(t, r.Fault(0))
		})
	}
}
