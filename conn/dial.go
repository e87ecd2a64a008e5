package conn

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"
)

// dial is the life of one dialler: it tries until it has a working connection
// or the fleet is closed. A node that is down has exactly one. Attempt 0 is the
// node's very first, and the only one without a pause before it.
func (f *Fleet) dial(index, attempt int) {
	defer f.dials.Done()
	n := f.nodes[index]
	for ; ; attempt++ {
		if attempt > 0 && !f.pause(attempt) {
			return
		}
		nc, runID, err := f.connect(f.cfg.Addresses[index])
		f.lock.Lock()
		if err == nil {
			err = f.adopt(n, nc, runID, attempt)
		}
		closed := f.closed
		if err != nil && !closed {
			n.cause = &notSent{&Error{Addr: n.addr, Op: "dial", Err: err}}
		}
		f.lock.Unlock()
		if attempt == 0 {
			f.first.Done()
		}
		if err == nil || closed {
			return
		}
	}
}

// adopt brings a new connection in. It owns nc, also when it fails. The lock is
// held.
func (f *Fleet) adopt(n *node, nc net.Conn, runID string, attempt int) error {
	err := f.mayAdopt(n, runID)
	if err != nil {
		_ = transport(nc).Close()
		return err
	}
	s, err := f.poller.adopt(nc, n.index)
	if err == nil {
		n.up(s, runID, attempt)
		f.rose(n)
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

// backoff is how long to wait before an attempt, counted from 1: full jitter over an
// exponential, so that many clients that lost a node together do not return
// together.
func (f *Fleet) backoff(attempt int) time.Duration {
	ceiling := min(minBackoff<<min(attempt-1, 10), maxBackoff)
	return max(time.Duration(f.cfg.Rand()*float64(ceiling)), time.Millisecond)
}

// pause waits that long. It returns false once the fleet is closed.
func (f *Fleet) pause(attempt int) bool {
	timer := time.NewTimer(f.backoff(attempt))
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
