//go:build unix

package main

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// TestTLS: each command reaches masters that require certificates, as Redis does by default with TLS. A listener's
// certificate is renewed while it serves. A half-renewed pair is not used.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir, authority := t.TempDir(), testkit.NewAuthority(t)
	file := func(name string) string { return filepath.Join(dir, name) }
	put := func(name string, text []byte) string { return write(t, file(name), string(text)) }
	certificate, key := authority.Issue()
	node := realredis.Start(t, realredis.Options{Persistent: true, TLS: &realredis.TLS{Certificate: certificate, Key: key, ClientCA: authority.PEM()}})
	put("ca", authority.PEM())
	put("cert", certificate)
	put("key", key)
	args := []string{"-nodes", "rediss://" + node.TLSAddr() + "?persistent=yes", "-tls-ca", file("ca"), "-tls-cert", file("cert"), "-tls-key", file("key")}
	status, out, errs := redlockOn(t, nil, append([]string{"nodes"}, args...)...)
	require.Equal(t, exitOK, status, out+errs)
	for _, short := range [][]string{args[:4], args[:2]} {
		status, out, errs = redlockOn(t, nil, append([]string{"nodes"}, short...)...)
		require.Equal(t, exitUsage, status, out)
		require.Contains(t, errs, "certificate")
	}

	own := testkit.NewAuthority(t)
	trusted := own.Pool()
	certificate, key = own.Issue()
	d := serves(t, nil, append(args, "-listen", "127.0.0.1:0", "-listen-cert", put("own-cert", certificate), "-listen-key", put("own-key", key))...)
	ask := func(trusted *x509.CertPool, order string) string {
		c, err := tls.Dial("tcp", d.addr(), &tls.Config{RootCAs: trusted})
		if err != nil {
			return err.Error()
		}
		defer c.Close()
		return testkit.NewTextClient(t, c).Do(order)
	}
	answers := func(trusted *x509.CertPool) bool { return ask(trusted, "PING") == "+PONG" }
	require.True(t, answers(trusted))
	next := testkit.NewAuthority(t)
	certificate, key = next.Issue()
	put("own-cert", certificate)
	testkit.Await(t, "half a pair is seen", func() bool {
		return answers(trusted) && strings.Contains(d.err.String(), "the earlier ones stay in use")
	})
	require.True(t, answers(trusted))
	require.False(t, answers(next.Pool()))
	put("own-key", key)
	testkit.Await(t, "the new pair is used", func() bool { return answers(next.Pool()) })

	require.NoError(t, os.Chmod(file("key"), 0o644))
	d.reload()
	require.Contains(t, d.err.String(), "nothing has changed")
	require.Contains(t, d.err.String(), "other users of this machine can read it")
	require.True(t, answers(next.Pool()))

	// The certificate for the masters is read again, too: with one of a stranger the next connection is refused.
	require.NoError(t, os.Chmod(file("key"), 0o600))
	for _, signed := range []*testkit.Authority{own, authority} {
		certificate, key = signed.Issue()
		put("cert", certificate)
		put("key", key)
		d.reload()
		require.NoError(t, node.Kill())
		require.NoError(t, node.Restart())
		want := map[bool]string{true: "-NOQUORUM", false: "+OK"}[signed == own]
		testkit.Await(t, want, func() bool { return strings.HasPrefix(ask(next.Pool(), "SET "+rand.Text()+" v NX PX 30000"), want) })
	}
	d.signal(syscall.SIGTERM)
	require.Equal(t, exitOK, d.status())
}
