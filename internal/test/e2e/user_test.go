package e2e

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/redlock-go/redlock"
)

// userContext is a context of the user's own making: each of its methods calls on, with its name,
// before it answers. It shows none of package context below it.
type userContext struct {
	context.Context
	on func(method string)
}

func (c userContext) Deadline() (time.Time, bool) { c.on("Deadline"); return c.Context.Deadline() }
func (c userContext) Done() <-chan struct{}       { c.on("Done"); return c.Context.Done() }
func (c userContext) Err() error                  { c.on("Err"); return c.Context.Err() }
func (c userContext) Value(any) any               { c.on("Value"); return nil }

// in calls f in one method of a userContext.
func in(method string, f func()) func(string) {
	return func(called string) {
		if called == method {
			f()
		}
	}
}

// userConn is a Dialer's connection with methods of the user's own making.
type userConn struct {
	net.Conn
	read, write func(b []byte) (int, error)
	close       func() error
	deadline    func(time.Time) error
}

func (c *userConn) Read(b []byte) (int, error) {
	if c.read != nil {
		return c.read(b)
	}
	return c.Conn.Read(b)
}

func (c *userConn) Write(b []byte) (int, error) {
	if c.write != nil {
		return c.write(b)
	}
	return c.Conn.Write(b)
}

func (c *userConn) Close() error {
	if c.close != nil {
		return c.close()
	}
	return c.Conn.Close()
}

// NetConn shows what is below, as a TLS connection does. It is not the client's to close.
func (c *userConn) NetConn() net.Conn { return c.Conn }

func (c *userConn) SetDeadline(t time.Time) error {
	if c.deadline != nil {
		return c.deadline(t)
	}
	return c.Conn.SetDeadline(t)
}

func (c *userConn) SetReadDeadline(t time.Time) error {
	if c.deadline != nil {
		return c.deadline(t)
	}
	return c.Conn.SetReadDeadline(t)
}

func (c *userConn) SetWriteDeadline(t time.Time) error {
	if c.deadline != nil {
		return c.deadline(t)
	}
	return c.Conn.SetWriteDeadline(t)
}

// dialing has a client dial connections that wrap changes, by the address of their node.
func dialing(wrap func(addr string, c *userConn)) func(*redlock.Config) {
	return func(cfg *redlock.Config) {
		cfg.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			nc, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			c := &userConn{Conn: nc}
			wrap(addr, c)
			return c, nil
		}
	}
}

// userHandler is a slog.Handler of the user's own making.
type userHandler func()

func (userHandler) Enabled(context.Context, slog.Level) bool    { return true }
func (h userHandler) Handle(context.Context, slog.Record) error { h(); return nil }
func (h userHandler) WithAttrs([]slog.Attr) slog.Handler        { return h }
func (h userHandler) WithGroup(string) slog.Handler             { return h }

// userReader is an io.Reader of the user's own making.
type userReader func([]byte) (int, error)

func (f userReader) Read(p []byte) (int, error) { return f(p) }
