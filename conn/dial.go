package conn

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"
)

// dial is the life of one dialler: it tries until it has a working connection
// or the fleet is closed. A node that is down has exactly one.
func (f *Fleet) dial(index int, first bool) {
	defer f.dials.Done()
	n := f.nodes[index]
	for attempt := 0; ; attempt++ {
		if attempt > 0 || !first {
			if !f.pause(attempt) {
				return
			}
		}
		nc, runID, err := f.connect(f.cfg.Addresses[index])
		f.lock.Lock()
		if err == nil {
			err = f.adopt(n, nc, runID)
		}
		if err != nil {
			n.cause = &notSent{&Error{Addr: n.addr, Op: "dial", Err: err}}
		}
		closed := f.closed
		f.lock.Unlock()
		if first && attempt == 0 {
			f.first.Done()
		}
		if err == nil || closed {
			return
		}
	}
}

// adopt brings a new connection in. It owns nc, also when it fails. The lock is
// held.
func (f *Fleet) adopt(n *node, nc net.Conn, runID string) error {
	err := f.mayAdopt(n, runID)
	if err != nil {
		_ = transport(nc).Close()
		return err
	}
	s, err := f.poller.adopt(nc, n.index)
	if err == nil {
		n.up(s, runID)
	}
	return err
}

func (f *Fleet) mayAdopt(n *node, runID string) error {
	if f.closed {
		return ErrClosed
	}
	for _, other := range f.nodes {
		if other != n && other.sock != nil && runID != "" && other.runID == runID {
			return fmt.Errorf("%w, %s", ErrSameServer, other.addr)
		}
	}
	return nil
}

// pause waits before another attempt: full jitter over an exponential backoff,
// so that many clients that lost a node together do not return together. It
// returns false once the fleet is closed.
func (f *Fleet) pause(attempt int) bool {
	ceiling := min(minBackoff<<min(attempt, 10), maxBackoff)
	d := time.Duration(f.cfg.Rand() * float64(ceiling))
	timer := time.NewTimer(max(d, time.Millisecond))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-f.ctx.Done():
		return false
	}
}

// connect brings one connection up to where locks can be asked for.
func (f *Fleet) connect(addr Address) (net.Conn, string, error) {
	// Derived from the fleet's: Close must not wait for a black hole.
	ctx, cancel := context.WithTimeout(f.ctx, f.cfg.DialTimeout)
	defer cancel()
	dialer := net.Dialer{KeepAliveConfig: keepAlive}
	nc, err := dialer.DialContext(ctx, addr.Network, addr.Host)
	if err != nil {
		return nil, "", err
	}
	if tcp, ok := nc.(*net.TCPConn); ok {
		// The default of net, said here because everything depends on it.
		if err := tcp.SetNoDelay(true); err != nil {
			nc.Close()
			return nil, "", err
		}
	}
	if addr.TLS {
		nc = tls.Client(nc, f.tlsConfig(addr))
	}
	abort := context.AfterFunc(ctx, func() { _ = transport(nc).SetDeadline(time.Unix(1, 0)) })
	runID, err := f.handshake(ctx, nc, addr)
	if !abort() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = transport(nc).Close()
		return nil, "", err
	}
	return nc, runID, nil
}

// tlsConfig is the configured one with what must never be left open.
func (f *Fleet) tlsConfig(addr Address) *tls.Config {
	c := f.cfg.TLS.Clone()
	if c == nil {
		c = new(tls.Config)
	}
	c.MinVersion = max(c.MinVersion, tls.VersionTLS12)
	if c.ServerName == "" {
		c.ServerName, _, _ = net.SplitHostPort(addr.Host)
	}
	return c
}
