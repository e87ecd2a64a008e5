package conn

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tlsCase is a server and a client that should or should not agree.
type tlsCase struct {
	name           string
	server, client *tls.Config
	want           func(error) bool // nil where they agree
	version        uint16           // on which they do; 0 for any
}

// here is who the servers of these tests are.
var here = forHosts("127.0.0.1")

func expires(notBefore, notAfter time.Duration) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().Add(notBefore), time.Now().Add(notAfter)
	}
}

func usedFor(usage x509.ExtKeyUsage) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{usage} }
}

// invalid says that a certificate was refused for a reason.
func invalid(reason x509.InvalidReason) func(error) bool {
	return func(err error) bool {
		var bad x509.CertificateInvalidError
		return is[*tls.CertificateVerificationError](err) && errors.As(err, &bad) && bad.Reason == reason
	}
}

// is says that an error is, or wraps, one of a type.
func is[E error](err error) bool {
	var target E
	return errors.As(err, &target)
}

func otherHost(err error) bool {
	return is[*tls.CertificateVerificationError](err) && is[x509.HostnameError](err)
}

func otherAuthority(err error) bool {
	return is[*tls.CertificateVerificationError](err) && is[x509.UnknownAuthorityError](err)
}

// alerted says that the server refused us, and in which words of TLS.
func alerted(words ...string) func(error) bool {
	return func(err error) bool {
		var refused *net.OpError
		if !errors.As(err, &refused) || refused.Op != "remote error" {
			return false
		}
		for _, w := range words {
			if strings.Contains(err.Error(), w) {
				return true
			}
		}
		return false
	}
}

func saying(words string) func(error) bool {
	return func(err error) bool { return strings.Contains(err.Error(), words) }
}

// with returns a changed copy of a configuration.
func changed(c *tls.Config, change func(*tls.Config)) *tls.Config {
	c = c.Clone()
	change(c)
	return c
}

func between(least, most uint16) func(*tls.Config) {
	return func(c *tls.Config) { c.MinVersion, c.MaxVersion = least, most }
}

func tlsMatrix(t *testing.T) []tlsCase {
	us, stranger, nobody := newAuthority(t), newAuthority(t), &authority{t: t}
	middle := &authority{t: t}
	middle.cert, middle.key = us.sign(template("not an authority", here))
	late := &authority{t: t}
	late.cert, late.key = nobody.sign(template("late authority", expires(-2*time.Hour, -time.Hour), func(c *x509.Certificate) {
		c.IsCA = true
		c.KeyUsage |= x509.KeyUsageCertSign
	}))

	good, client := us.serves(here), us.trusted()
	named := changed(client, func(c *tls.Config) { c.ServerName = "redis.example" })
	asks := changed(good, func(c *tls.Config) { c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, us.pool() })
	asks12 := changed(asks, between(tls.VersionTLS12, tls.VersionTLS12))
	known := func(cert tls.Certificate) *tls.Config {
		return changed(client, func(c *tls.Config) { // also where the server names authorities
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
		})
	}
	us.t.Helper()
	return []tlsCase{
		{"good", good, client, nil, tls.VersionTLS13},
		{"TLS 1.3 only", changed(good, between(tls.VersionTLS13, tls.VersionTLS13)), client, nil, tls.VersionTLS13},
		{"TLS 1.2 only", changed(good, between(tls.VersionTLS10, tls.VersionTLS12)), client, nil, tls.VersionTLS12},
		{"TLS 1.1 only", changed(good, between(tls.VersionTLS10, tls.VersionTLS11)), client, alerted("protocol version not supported"), 0},
		{"TLS 1.1 only, careless client", changed(good, between(tls.VersionTLS10, tls.VersionTLS11)),
			changed(client, between(tls.VersionTLS10, 0)), alerted("protocol version not supported"), 0},
		{"TLS 1.1 only, by both", changed(good, between(tls.VersionTLS10, tls.VersionTLS11)),
			changed(client, between(tls.VersionTLS10, tls.VersionTLS11)), saying("no supported versions"), 0},

		{"expired", us.serves(here, expires(-2*time.Hour, -time.Hour)), client, invalid(x509.Expired), 0},
		{"not yet valid", us.serves(here, expires(time.Hour, 2*time.Hour)), client, invalid(x509.Expired), 0},
		{"expired authority", late.serves(here), late.trusted(), invalid(x509.Expired), 0},
		{"of a client", us.serves(here, usedFor(x509.ExtKeyUsageClientAuth)), client, invalid(x509.IncompatibleUsage), 0},
		{"of a server", us.serves(here, usedFor(x509.ExtKeyUsageServerAuth)), client, nil, 0},

		{"other address", us.serves(forHosts("127.0.0.2", "::1")), client, otherHost, 0},
		{"name for an address", us.serves(forHosts("redis.example")), client, otherHost, 0},
		{"address as a name", us.serves(func(c *x509.Certificate) { c.DNSNames = []string{"127.0.0.1"} }), client, otherHost, 0},
		{"nobody's", us.serves(), client, otherHost, 0},
		{"other name", us.serves(forHosts("other.example")), named, otherHost, 0},
		{"name below", us.serves(forHosts("*.redis.example")), named, otherHost, 0},
		{"name beside, and the address", us.serves(forHosts("127.0.0.1", "redis.example.org")), named, otherHost, 0},
		{"same name", us.serves(forHosts("REDIS.example")), named, nil, 0},
		{"any name", us.serves(forHosts("*.example")), named, nil, 0},
		{"name that paints", us.serves(forHosts("\x1b[31m\r\nINFO all is well")), named, otherHost, 0},
		{"thousands of names", us.serves(manyNames), named, otherHost, 0},

		{"no authority known", good, nil, otherAuthority, 0},
		{"other authority", stranger.serves(here), client, otherAuthority, 0},
		{"self-signed", nobody.serves(here), client, otherAuthority, 0},
		{"signed by no authority", middle.serves(here), client, otherAuthority, 0},

		{"certificate given", asks, known(us.issue()), nil, tls.VersionTLS13},
		{"certificate given, TLS 1.2", asks12, known(us.issue()), nil, tls.VersionTLS12},
		{"certificate missing", asks, client, alerted("certificate required"), 0},
		{"certificate missing, TLS 1.2", asks12, client, alerted("handshake failure", "bad certificate", "certificate required"), 0},
		{"certificate of another authority", asks, known(stranger.issue()), alerted("unknown certificate authority"), 0},
		{"certificate of another authority, TLS 1.2", asks12, known(stranger.issue()), alerted("unknown certificate authority"), 0},
		{"certificate that has expired", asks, known(us.issue(expires(-2*time.Hour, -time.Hour))), alerted("bad certificate", "expired certificate"), 0},
		{"certificate not asked for", good, known(us.issue()), nil, 0},
	}
}

func manyNames(c *x509.Certificate) {
	for i := range 1000 {
		c.DNSNames = append(c.DNSNames, strings.Repeat("x", i%60+1)+".example")
	}
}

// tapped is a rig whose node 0 is reached through a tap, and who has a secret
// for it. Node 1 is honest and speaks in the clear.
func tapped(t *testing.T, p *tap, secure bool, client *tls.Config) *rig {
	t.Helper()
	return newRig(t, true, []*peer{newPeer(t), newPeer(t)}, func(cfg *Config) {
		cfg.TLS = client
		cfg.Addresses[0].Host, cfg.Addresses[0].TLS = p.addr(), secure
		cfg.Addresses[0].login = newLogin("me", marked)
	})
}

// requireSealed wants nothing in what a client said that others may read.
func requireSealed(t *testing.T, said string) {
	t.Helper()
	for _, word := range []string{marked, "AUTH", "SCRIPT", "ECHO"} {
		require.NotContains(t, said, word)
	}
	if said != "" {
		require.Equal(t, "\x16\x03\x01", said[:3], "a ClientHello")
	}
}

func TestTLSMatrix(t *testing.T) {
	for _, test := range tlsMatrix(t) {
		t.Run(test.name, func(t *testing.T) {
			server := newPeer(t, func(p *peer) { p.tls = test.server })
			p := newTap(t, server.addr)
			r := tapped(t, p, true, test.client)
			r.Settle()
			r.until("for the honest node", func() bool { return r.Up(1) })
			if test.want != nil {
				r.do(func() {
					err := r.Fault(0)
					require.Error(t, err)
					assert.True(t, test.want(err), "%T %v", err, err)
					assert.ErrorIs(t, err, ErrNotSent)
					requireCause(t, hostile{name: test.name}, err)
				})
				waitFor(t, "for the next dial", func() bool { return server.dialled.Load() > 1 })
				r.close()
				requireSealed(t, p.said())
				assert.Empty(t, server.greeted, "nobody was let in")
				return
			}
			r.do(func() { require.NoError(t, r.Fault(0)) })
			w := server.next(t)
			if test.version != 0 {
				assert.Equal(t, test.version, w.Conn.(*tls.Conn).ConnectionState().Version)
			}
			l := r.sendTo(0, "works")
			w.expect(string(l.Buf))
			w.send(echoes("works"))
			r.settle(l)
			require.NoError(t, l.errOf(0))
			requireSealed(t, p.said())
		})
	}
}

// A server that speaks in the clear does not get our password in the clear, and
// one that speaks TLS is not believed in the clear.
func TestTLSAndNot(t *testing.T) {
	us := newAuthority(t)
	ended := func(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) }
	for name, test := range map[string]struct {
		secure bool
		server *tls.Config
		does   steps
		want   func(error) bool
	}{
		"clear server":                  {true, nil, steps{"-ERR Protocol error: invalid multibulk length\r\n"}, is[tls.RecordHeaderError]},
		"clear server that agrees":      {true, nil, steps{floodOf(ok, 1<<20)}, is[tls.RecordHeaderError]},
		"clear server that hangs up":    {true, nil, steps{hangUp}, ended},
		"alert at once":                 {true, nil, steps{"\x15\x03\x03\x00\x02\x02\x28"}, alerted("handshake failure")},
		"TLS server":                    {false, us.serves(here), nil, ended},
		"TLS server that sends alerts":  {false, nil, steps{"\x15\x03\x03\x00\x02\x02\x46", hangUp}, func(error) bool { return true }},
		"TLS server that says it knows": {false, nil, steps{"\x16\x03\x03\x00\x02\x02\x46", hangUp}, func(error) bool { return true }},
	} {
		t.Run(name, func(t *testing.T) {
			silent := newPeer(t)
			silent.stop()
			im := newImpostor(t, silent.addr, way{server: test.server}, test.does)
			p := newTap(t, silent.addr)
			r := tapped(t, p, test.secure, us.trusted())
			r.Settle()
			r.do(func() {
				err := r.Fault(0)
				require.Error(t, err)
				assert.True(t, test.want(err), "%T %v", err, err)
				requireCause(t, hostile{name: name}, err)
			})
			r.until("for the honest node", func() bool { return r.Up(1) })
			r.close()
			im.stop()
			if test.secure {
				requireSealed(t, p.said())
			}
		})
	}
}
