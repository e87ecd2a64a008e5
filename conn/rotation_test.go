package conn

import (
	"crypto/tls"
	"crypto/x509"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rotating is a server whose certificate is whatever was put last.
func rotating(first tls.Certificate) (server *tls.Config, now *atomic.Pointer[tls.Certificate]) {
	now = new(atomic.Pointer[tls.Certificate])
	now.Store(&first)
	return &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return now.Load(), nil }}, now
}

// A server is found again with a new certificate of the authority that we know,
// and refused with one of another, until it has a good one again. Connections
// that are up do not care.
func TestCertificateRotation(t *testing.T) {
	us, stranger := newAuthority(t), newAuthority(t)
	server, certificate := rotating(us.issue(here))
	r := newTLSRig(t, server, us.trusted())
	r.up()
	r.works()
	put := func(c tls.Certificate) {
		certificate.Store(&c)
		r.works()
		r.wires[0].cut()
		r.lose(0)
	}

	put(us.issue(here))
	r.up()
	r.works()
	assert.Equal(t, int64(2), r.peers[0].dialled.Load(), "at the first attempt")

	for name, bad := range map[string]struct {
		certificate tls.Certificate
		want        func(error) bool
	}{
		"another authority": {stranger.issue(here), otherAuthority},
		"another host":      {us.issue(forHosts("127.0.0.2")), otherHost},
		"the past":          {us.issue(here, expires(-2*time.Hour, -time.Hour)), invalid(x509.Expired)},
	} {
		put(bad.certificate)
		refused := r.peers[0].dialled.Load() + 2
		waitFor(t, "for it to be refused twice", func() bool { return r.peers[0].dialled.Load() >= refused })
		r.do(func() {
			assert.False(t, r.Up(0), name)
			assert.True(t, bad.want(r.Fault(0)), "%s: %v", name, r.Fault(0))
			assert.True(t, r.Up(1), name)
		})
		assert.Empty(t, r.peers[0].greeted, name)

		c := us.issue(here)
		certificate.Store(&c)
		r.up()
		r.works()
	}
}

// Sessions are resumed where the caller's configuration keeps them, but only
// with whom they were made.
func TestSessionResumption(t *testing.T) {
	us, stranger := newAuthority(t), newAuthority(t)
	client := us.trusted()
	client.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	r := newTLSRig(t, us.serves(here), client)
	for i := range 3 {
		r.up()
		r.works() // which reads the server's ticket
		assert.Equal(t, i > 0, r.wires[0].Conn.(*tls.Conn).ConnectionState().DidResume)
		r.wires[0].cut()
		r.lose(0)
	}
	r.up()
	impostor := r.peers[0]
	impostor.stop()
	impostor.running.Wait()
	r.lose(0)
	impostor.tls = stranger.serves(here)
	before := impostor.dialled.Load()
	impostor.start(t)
	waitFor(t, "for it to be refused", func() bool { return impostor.dialled.Load() > before+1 })
	r.do(func() { require.True(t, otherAuthority(r.Fault(0)), "%v", r.Fault(0)) })
}
