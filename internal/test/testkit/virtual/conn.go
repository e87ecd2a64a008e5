package virtual

import (
	"net"
	"time"
)

// memConn is one side of a connection.
type memConn struct {
	in, out       *stream
	local, remote address
}

// address implements net.Addr.
type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

func (c *memConn) Read(b []byte) (int, error)  { return c.in.read(b) }
func (c *memConn) Write(b []byte) (int, error) { return c.out.write(b) }

// HasEnded reports whether a read would find the end, and not wait.
func (c *memConn) HasEnded() bool {
	c.in.path.net.mu.Lock()
	defer c.in.path.net.mu.Unlock()
	return c.in.hasEnded(time.Now())
}

// Close has the peer read the end after all written bytes. Later writes of the peer vanish.
func (c *memConn) Close() error {
	mu := &c.in.path.net.mu
	mu.Lock()
	defer mu.Unlock()
	if c.in.ends[reading].err == net.ErrClosed {
		return net.ErrClosed
	}
	c.in.vanish()
	c.in.stop(reading, net.ErrClosed)
	c.out.put(nil)
	c.out.stop(writing, net.ErrClosed)
	return nil
}

func (c *memConn) LocalAddr() net.Addr  { return c.local }
func (c *memConn) RemoteAddr() net.Addr { return c.remote }

func (c *memConn) SetDeadline(t time.Time) error {
	c.set(c.in, reading, t)
	return c.set(c.out, writing, t)
}

func (c *memConn) SetReadDeadline(t time.Time) error  { return c.set(c.in, reading, t) }
func (c *memConn) SetWriteDeadline(t time.Time) error { return c.set(c.out, writing, t) }

func (c *memConn) set(s *stream, end int, t time.Time) error {
	s.path.net.mu.Lock()
	defer s.path.net.mu.Unlock()
	e := &s.ends[end]
	if e.err != nil {
		return e.err
	}
	e.limit = t
	e.ring()
	return nil
}
