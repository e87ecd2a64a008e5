package virtual

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/base/errno"
)

// Network is a network in memory. Its connections are as those of TCP: bytes arrive in order,
// deadlines work for reads and writes, and a peer sees a close on its arrival.
type Network struct {
	seed uint64

	mu        sync.Mutex // guards all of its links, streams and listeners
	listeners map[string]*listener
	links     map[[2]string]*Link
	ports     int
}

// Link is that from a host to an address.
func (n *Network) Link(host, addr string) *Link {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := [2]string{host, addr}
	l := n.links[key]
	if l == nil {
		h := fnv.New64a()
		_, _ = fmt.Fprint(h, host, " ", addr)
		l = &Link{net: n}
		l.there = newPath(n, rand.New(rand.NewPCG(n.seed, h.Sum64())))
		l.back = newPath(n, rand.New(rand.NewPCG(n.seed, h.Sum64()+1)))
		n.links[key] = l
	}
	return l
}

// Dialer is that of a host, as Config.Dialer.
func (n *Network) Dialer(host string) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		l := n.Link(host, addr)
		c, err := n.dial(ctx, l, host, addr)
		if err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Addr: address(addr), Err: err}
		}
		return c, nil
	}
}

// dial takes a round trip, and the time of a hold on the link.
func (n *Network) dial(ctx context.Context, l *Link, host, addr string) (net.Conn, error) {
	n.mu.Lock()
	for again := time.Second; l.dropped; again *= 2 {
		n.mu.Unlock()
		timer := time.NewTimer(again)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
		n.mu.Lock()
	}
	for l.opened != nil {
		opened := l.opened
		n.mu.Unlock()
		select {
		case <-opened:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		n.mu.Lock()
	}
	trip := time.Until(l.there.due(time.Time{})) + time.Until(l.back.due(time.Time{}))
	n.mu.Unlock()
	timer := time.NewTimer(trip)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	at := n.listeners[addr]
	if at == nil || l.refused {
		return nil, errno.ConnRefused
	}
	there, back := newStream(l.there), newStream(l.back)
	at.queue = append(at.queue, &memConn{there, back, address(addr), address(host)})
	at.ring()
	return &memConn{back, there, address(host), address(addr)}, nil
}

// Listen is that of all hosts, as fakeredis.Options.Listen. Port 0 means a free one.
func (n *Network) Listen(_, addr string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if host, port, _ := net.SplitHostPort(addr); port == "0" {
		n.ports++
		addr = net.JoinHostPort(host, fmt.Sprint(7000+n.ports))
	}
	if n.listeners[addr] != nil {
		return nil, errno.AddrInUse
	}
	l := &listener{net: n, addr: address(addr), wake: make(chan struct{}, 1)}
	n.listeners[addr] = l
	return l, nil
}

// listener is one address with accepted connections.
type listener struct {
	net    *Network
	addr   address
	queue  []*memConn
	closed bool
	wake   chan struct{} // holds one
}

func (l *listener) ring() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Accept implements net.Listener, for one caller at a time.
func (l *listener) Accept() (net.Conn, error) {
	for {
		l.net.mu.Lock()
		closed := l.closed
		var c *memConn
		if !closed && len(l.queue) > 0 {
			c, l.queue = l.queue[0], l.queue[1:]
		}
		l.net.mu.Unlock()
		switch {
		case closed:
			return nil, net.ErrClosed
		case c != nil:
			return c, nil
		}
		<-l.wake
	}
}

// Close implements net.Listener. Connections not accepted yet are reset.
func (l *listener) Close() error {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	if l.closed {
		return net.ErrClosed
	}
	l.closed = true
	delete(l.net.listeners, string(l.addr))
	for _, c := range l.queue {
		c.in.reset()
		c.out.reset()
	}
	l.ring()
	return nil
}

func (l *listener) Addr() net.Addr { return l.addr }
