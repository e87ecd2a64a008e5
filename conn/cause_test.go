package conn

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/errno"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/scripted"
)

// TestCauses: the text of a cause is kept, without the node's name. What it wraps is found.
func TestCauses(t *testing.T) {
	f := &Fleet{hidden: ofContexts}
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
	} {
		err := f.causeOf(c.err)
		assert.Equal(t, c.text, err.Error())
		assert.ErrorIs(t, err, c.is)
	}
	var op *net.OpError
	require.ErrorAs(t, f.causeOf(refused), &op)
	require.Equal(t, refused, op)
}

// TestNotSentIsAskedForWithoutAllocating: each batch is failed at once by each node that is down.
func TestNotSentIsAskedForWithoutAllocating(t *testing.T) {
	var err error = &notSent{&Error{Addr: "a", Op: "dial", Err: ErrDown}}
	var is, isDown bool
	require.Zero(t, testing.AllocsPerRun(100, func() { is, isDown = errors.Is(err, ErrNotSent), errors.Is(err, ErrDown) }))
	require.True(t, is)
	require.True(t, isDown)
}

// TestTLSOnAPlainPort: a server without TLS that waits for the end of a line, as Redis does, is named before the dial runs out
// of time, and so is the end of a connection.
func TestTLSOnAPlainPort(t *testing.T) {
	t.Parallel() // it waits
	_, client := testkit.NewIdentity(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	var waits atomic.Bool
	go func() {
		for {
			nc, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer nc.Close()
				buf := make([]byte, 1<<16)
				n, _ := nc.Read(buf)
				switch {
				case !waits.Load():
					return
				case string(buf[:n]) == ping:
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
	r.until("the end", func() bool {
		return strings.Contains(r.Fault(0).Error(), "a published port does without a server behind it: ")
	})
	waits.Store(true)
	r.until("the error", func() bool { return errors.Is(r.Fault(0), ErrNotTLS) })
}
