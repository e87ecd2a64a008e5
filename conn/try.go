package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"time"

	"github.com/redlock-go/redlock/internal/base/errno"
)

// try is one attempt to connect to one address of a node, from the first packet to the last greeting.
type try struct {
	*dialer
	host  string        // the address
	again bool          // beside an earlier try
	old   bool          // greet in RESP2, without HELLO
	left  time.Duration // of DialTimeout

	nc net.Conn
	login
	stream
	id   identity
	form func() uint16 // once all is answered; nil: 0
	err  error

	answered bool // the server has answered a command
	welcome  bool // and has taken HELLO
	hungUp   bool // before that it has ended the connection
}

// run makes the try, and gives it to ended unless the dial is over. It runs the functions in Config, and a Dialer's
// connection, in a goroutine of its own: a panic, or the end of the goroutine (runtime.Goexit), is an error as any
// other, and the node is dialed again.
func (t *try) run(ctx context.Context, ended chan<- *try) {
	returned := false
	defer func() {
		if v := recover(); !returned {
			t.err = brokenOff("while dialing", v)
		}
		if t.err != nil {
			t.drop()
		}
		select {
		case ended <- t:
		case <-ctx.Done():
			t.drop()
		}
	}()
	t.err = t.whole(ctx)
	if t.err != nil {
		t.err = ofUser(t.err)
	}
	returned = true
}

// drop closes the connection, if there is one.
func (t *try) drop() {
	if t.nc != nil {
		hangUp(&t.fleet.dials, t.nc, false)
		t.nc = nil
	}
}

// brokenOff is the error of user code after a panic with v, or after the end of its goroutine if v is nil. It shows
// the value of a panic of the runtime only: other values may contain credentials.
func brokenOff(where string, v any) error {
	switch err, ok := v.(runtime.Error); {
	case v == nil:
		return fmt.Errorf("goroutine ended %s (runtime.Goexit)", where)
	case ok:
		return fmt.Errorf("panic %s: %w", where, err)
	}
	return fmt.Errorf("panic %s: a %T", where, v)
}

// whole dials and completes the handshake. A proxy that hangs up at HELLO is dialed again at once, and not asked.
func (t *try) whole(ctx context.Context) error {
	err := t.once(ctx)
	if !t.hungUp {
		return err
	}
	t.drop()
	t.old, t.hungUp = true, false
	again := t.once(ctx)
	if t.hungUp { // not at HELLO: at anything
		return err
	}
	return again
}

// once makes one connection.
func (t *try) once(ctx context.Context) error {
	err := t.step(ctx, "the connect", t.open)
	if err != nil {
		return err
	}
	if secure, ok := t.nc.(*tls.Conn); ok {
		if err = t.step(ctx, "the TLS handshake", func(ctx context.Context) error { return t.secure(ctx, secure) }); err != nil {
			return err
		}
	}
	if t.login, err = t.credentials(); err != nil {
		return err
	}
	return t.step(ctx, "the greeting", func(ctx context.Context) error {
		abort := abortWith(ctx, transport(t.nc))
		err := t.greet()
		if !abort() && err == nil {
			err = ctx.Err()
		}
		return err
	})
}

// step takes a step in what is left of DialTimeout.
func (t *try) step(ctx context.Context, name string, take func(context.Context) error) error {
	return within(ctx, &t.left, t.fleet.cfg.DialTimeout, name, take)
}

// within takes a step in what is left of a bound. The error of a step out of time names the bound: the clock decides, since
// a deadline of package net may be noticed before the end of the context with the same deadline.
func within(ctx context.Context, left *time.Duration, bound time.Duration, step string, take func(context.Context) error) error {
	began := time.Now()
	timed, cancel := context.WithTimeout(ctx, *left)
	defer cancel()
	err := take(timed)
	took := time.Since(began)
	if err != nil && took >= *left && ctx.Err() == nil && isTimeout(err) {
		text := fmt.Sprintf("no answer within %v", bound)
		if step != "" {
			text += " (DialTimeout) to " + step
		}
		err = &cause{text, os.ErrDeadlineExceeded, nil}
	}
	*left = max(0, *left-took)
	return err
}

// isTimeout reports whether an error is that of a step cut off. Any other, such as "network is unreachable", says
// more than the time.
func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, net.ErrClosed) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

// isEnd reports whether an error is the end of a connection by the peer.
func isEnd(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errno.ConnReset) || errors.Is(err, errno.BrokenPipe)
}

// open dials, and lays TLS over the connection where the node has it.
func (t *try) open(ctx context.Context) error {
	var secure *tls.Config
	if t.addr.TLS {
		secure = t.fleet.cfg.tlsFor(t.addr) // first: it may panic
	}
	nc, err := t.reach(ctx)
	if err != nil {
		return err
	}
	t.nc = nc
	if secure != nil {
		t.nc = tls.Client(nc, secure)
	}
	return nil
}

// reach dials.
func (t *try) reach(ctx context.Context) (net.Conn, error) {
	dial := t.fleet.cfg.Dialer
	if dial == nil {
		dial = (&net.Dialer{KeepAliveConfig: keepAlive}).DialContext
	}
	nc, err := dial(ctx, t.addr.Network, t.host)
	if err == nil && nc == nil {
		err = errors.New("dialer returned no connection")
	}
	return nc, err
}
