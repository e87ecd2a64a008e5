package e2e

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redlock-go/redlock"
)

// network is what a client dials through. It keeps nodes from the client, or makes their
// answers late.
type network struct {
	late  map[string]time.Duration // by the address of a node
	mu    sync.Mutex
	apart map[string]bool
	conns map[string][]net.Conn
}

func newNetwork() *network {
	return &network{late: map[string]time.Duration{}, apart: map[string]bool{}, conns: map[string][]net.Conn{}}
}

// use has a client dial through the network.
func (n *network) use(c *redlock.Config) { c.Dialer = n.dial }

func (n *network) dial(ctx context.Context, proto, addr string) (net.Conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, proto, addr)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.apart[addr] {
		return nil, errors.Join(errors.New("cut off"), nc.Close())
	}
	n.conns[addr] = append(n.conns[addr], nc)
	if by := n.late[addr]; by > 0 {
		return newLateConn(nc, by), nil
	}
	return nc, nil
}

// cut keeps a node from the client from now on.
func (n *network) cut(addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.apart[addr] = true
	for _, nc := range n.conns[addr] {
		_ = nc.Close()
	}
}

// lateConn is a connection that delivers each byte a fixed time after its arrival, as a
// longer way does: bytes under way do not wait for each other.
type lateConn struct {
	net.Conn
	arrived chan arrival
	now     arrival // what is being read
	once    sync.Once
	closed  chan struct{}
}

type arrival struct {
	bytes []byte
	err   error
	due   time.Time
}

func newLateConn(nc net.Conn, by time.Duration) *lateConn {
	c := &lateConn{Conn: nc, arrived: make(chan arrival, 64), closed: make(chan struct{})}
	go func() {
		for {
			b := make([]byte, 4096)
			k, err := nc.Read(b)
			select {
			case c.arrived <- arrival{b[:k], err, time.Now().Add(by)}:
			case <-c.closed:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return c
}

// Read implements net.Conn.
func (c *lateConn) Read(p []byte) (int, error) {
	if len(c.now.bytes) == 0 && c.now.err == nil {
		select {
		case c.now = <-c.arrived:
			time.Sleep(time.Until(c.now.due))
		case <-c.closed:
			return 0, net.ErrClosed
		}
	}
	k := copy(p, c.now.bytes)
	if c.now.bytes = c.now.bytes[k:]; len(c.now.bytes) > 0 {
		return k, nil
	}
	return k, c.now.err
}

// Close implements net.Conn.
func (c *lateConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
