package conn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/errno"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/scripted"
)

// TestCauses: the text of a cause is kept, without the node's name. What it wraps is
// found, but not the errors that mean something else to callers.
func TestCauses(t *testing.T) {
	errOwners := errors.New("of the owner")
	f := &Fleet{hidden: append(ofContexts, errOwners)}
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 3), Port: 6379}, Err: os.NewSyscallError("connect", errno.ConnRefused)}
	unknown := &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "db-3", IsNotFound: true}}
	for _, c := range []struct {
		err  error
		text string
		is   error
	}{
		{io.ErrUnexpectedEOF, "unexpected EOF", io.ErrUnexpectedEOF},
		{refused, "connect: " + errno.ConnRefused.Error(), errno.ConnRefused},
		{fmt.Errorf("tls: %w", refused), "tls: connect: " + errno.ConnRefused.Error(), errno.ConnRefused},
		{unknown, "lookup: no such host", unknown},
		{context.DeadlineExceeded, "context deadline exceeded", nil},
		{fmt.Errorf("credentials: %w", context.Canceled), "credentials: context canceled", nil},
		{errors.Join(os.ErrDeadlineExceeded, io.EOF), "i/o timeout\nEOF", io.EOF},
		{fmt.Errorf("proxy: %w", errOwners), "proxy: of the owner", nil},
		{&cause{"no answer within 1s", os.ErrDeadlineExceeded, nil}, "no answer within 1s", nil},
	} {
		err := f.causeOf(c.err)
		assert.Equal(t, c.text, err.Error())
		if c.is != nil {
			assert.ErrorIs(t, err, c.is)
		}
		for _, hidden := range f.hidden {
			assert.NotErrorIs(t, err, hidden)
		}
	}
	var op *net.OpError
	require.ErrorAs(t, f.causeOf(refused), &op)
	require.Equal(t, refused, op)
}

// TestTLSOnAPlainPort: a server without TLS is named before the dial runs out of
// time, whether it answers the handshake in the clear, or waits for the end of a line as
// Redis does.
func TestTLSOnAPlainPort(t *testing.T) {
	t.Parallel() // it waits
	_, client := testkit.NewIdentity(t)
	for name, quick := range map[string]bool{"answers": true, "waits": false} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			t.Cleanup(func() { _ = listener.Close() })
			go func() {
				for {
					nc, err := listener.Accept()
					if err != nil {
						return
					}
					go func() {
						defer nc.Close()
						buf := make([]byte, 1<<16)
						if n, _ := nc.Read(buf); quick || string(buf[:n]) == ping {
							_, _ = nc.Write([]byte("-ERR no\r\n"))
						}
						_, _ = io.Copy(io.Discard, nc)
					}()
				}
			}()
			r := newTestFleet(t, true, []*scripted.Server{scripted.New(t)}, func(cfg *Config) {
				cfg.TLS, cfg.Addresses[0].TLS, cfg.Addresses[0].Host = client, true, listener.Addr().String()
				cfg.DialTimeout = 4 * time.Second
			})
			r.until("the error", func() bool { return errors.Is(r.Fault(0), ErrNotTLS) })
			r.do(func() { assert.True(t, permanent(r.Fault(0))) })
		})
	}
}
