package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"
)

// A server without TLS on its port does not report it: Redis and Valkey wait for the end of a line, and a TLS
// handshake has none. So a handshake without an answer after a quarter of DialTimeout is doubted, and a second
// connection asks in the clear. It carries a PING and no credentials. The handshake goes on meanwhile.

// ping is the command sent in the clear.
const ping = "*1\r\n$4\r\nPING\r\n"

// secure makes the TLS handshake.
func (t *try) secure(ctx context.Context, nc *tls.Conn) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	asked := make(chan struct{})
	doubt := time.AfterFunc(t.fleet.cfg.DialTimeout/4, func() {
		defer close(asked)
		if t.answersInTheClear(ctx) {
			cancel(ErrNotTLS)
		}
	})
	err := nc.HandshakeContext(ctx)
	cause := context.Cause(ctx)
	cancel(nil)
	if !doubt.Stop() {
		<-asked // no goroutine is left
	}
	var header tls.RecordHeaderError
	var untrusted *tls.CertificateVerificationError
	switch {
	case err == nil:
		return nil
	case cause == ErrNotTLS:
		return ErrNotTLS
	case errors.As(err, &header): // it answers in the clear
		return fmt.Errorf("%w (%w)", ErrNotTLS, err)
	case errors.As(err, &untrusted):
		return fmt.Errorf("%w: %w", ErrUntrusted, err)
	case isRejection(err):
		return fmt.Errorf("%w (%w)", ErrRejected, err)
	case isEnd(err):
		return hangUpError(err, true)
	}
	return fmt.Errorf("tls: %w", err)
}

// isRejection reports whether an error is the server's alert, but one of a passing state: the same handshake will be
// refused again. In TLS 1.3 the handshake of a client without a certificate ends well, and the alert comes in place of
// the first answer.
func isRejection(err error) bool {
	var alert *net.OpError
	if !errors.As(err, &alert) || alert.Op != "remote error" {
		return false
	}
	switch alert.Err.Error() {
	case "tls: internal error", "tls: user canceled", "tls: close notify":
		return false
	}
	return true
}

// answersInTheClear reports whether a server at the address speaks RESP without TLS.
func (t *try) answersInTheClear(ctx context.Context) bool {
	defer func() { _ = recover() }() // of the functions in Config
	nc, err := t.reach(ctx)
	if err != nil {
		return false
	}
	defer hangUp(&t.fleet.dials, nc, false)
	defer abortWith(ctx, nc)()
	if _, err := nc.Write([]byte(ping)); err != nil {
		return false
	}
	var first [1]byte
	n, _ := nc.Read(first[:])
	return n == 1 && (first[0] == '+' || first[0] == '-')
}

// abortWith aborts reads and writes of a connection when ctx ends. stop returns false if it has ended.
func abortWith(ctx context.Context, nc net.Conn) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		defer func() { _ = recover() }() // of a dialer's own connection
		if nc.SetDeadline(time.Unix(1, 0)) != nil {
			_ = nc.Close() // it knows none: a dialer's own, or one that is gone
		}
	})
}
