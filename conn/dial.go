package conn

import (
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redlock-go/redlock/quorum"
)

// dial is the goroutine of one dialer: it tries until it has a working connection or the fleet is closed. A node that
// is down has exactly one. Attempt 0 has no pause before it: it is the node's first, or the connection before has lived.
func (f *Fleet) dial(index, attempt int) {
	n := f.nodes[index]
	d := dialer{fleet: f, addr: f.cfg.Addresses[index]}
	f.lock.Lock()
	cause := n.cause
	f.lock.Unlock()
	var known classes
	known.isNew(cause) // the owner knows it, and the one of the node's first dial
	for took := time.Duration(0); ; attempt++ {
		if attempt > 0 && !f.pause(attempt, cause, took) {
			return
		}
		began := time.Now()
		nc, id, err := d.connect()
		took = time.Since(began)
		f.lock.Lock()
		before := n.id
		var several bool
		if err == nil {
			err = f.adopt(n, nc, id, attempt)
			several = err == nil && n.leadsToSeveral(before.RunID)
		}
		closed := f.closed
		if err != nil && !closed {
			rested := n.isResting()
			if rested {
				n.down("dial", err)
			} else {
				n.cause = n.unsent("dial", f.causeOf(err))
			}
			isNew := known.isNew(n.cause)
			switch isFirst := f.first.dialing.Has(index); {
			case isFirst && f.cfg.OnDown != nil:
				f.cfg.OnDown(index)
			case !isFirst && !rested && f.cfg.knobs.OnStays != nil:
				f.cfg.knobs.OnStays(index, isNew)
			}
		}
		f.first.ended(index)
		cause = n.cause
		f.lock.Unlock()
		if err == nil {
			f.warn(n, id, before, several)
		}
		if err == nil || closed {
			return
		}
	}
}

// warn logs that a node may drop keys before their time, once for each server process at an address. before is the
// identity from the last connection; several is news about the address. A logger is user code: it is called without the
// lock, and its panic does not end the dialer.
func (f *Fleet) warn(n *node, id, before identity, several bool) {
	defer func() { _ = recover() }()
	log := f.cfg.Logger
	if log == nil {
		return
	}
	if several {
		log.Warn("redlock: the address leads to several servers, and each has keys of its own: give each server its own address", "node", n.addr)
	}
	if n.persistent && id.volatile != "" && (id.RunID != before.RunID || id.volatile != before.volatile) {
		log.Warn("redlock: node is declared to forget nothing in a restart (?persistent=yes), and its settings show that it does: it is treated as any other",
			"node", n.addr, "settings", id.volatile)
	}
	if id.policy != "" && id.policy != noEviction && (id.RunID != before.RunID || id.policy != before.policy) {
		log.Warn("redlock: node may evict locks when its memory is short; set its maxmemory-policy to "+noEviction,
			"node", n.addr, "policy", id.policy)
	}
}

// adopt brings a new connection in. It owns nc, also when it fails. The lock is held.
func (f *Fleet) adopt(n *node, nc net.Conn, id identity, attempt int) error {
	if n.isResting() && !n.replaces(id) && !f.closed {
		n.down("read", n.cause.cause.Err) // before Accept: the owner hears of an end before a begin
	}
	err := f.mayAdopt(n, id)
	if err != nil {
		hangUp(&f.dials, nc, false)
		return err
	}
	s, err := f.poller.adopt(nc, n.index)
	if err != nil {
		f.servers.leave(id.RunID, n)
		return err
	}
	n.up(s, id)
	n.failed = attempt
	waited := n.owed.len > 0
	f.enlist()
	if f.cfg.OnUp != nil {
		f.cfg.OnUp(n.index)
	}
	if waited {
		n.flush()
	} else if n.owed.len > 0 {
		n.opening = n.owed.at(0)
	}
	return nil
}

// hangUp closes a connection, in a goroutine of all: to close a Dialer's own is user code, and may block or panic,
// while the caller may hold the lock. Of a TLS connection what is below is closed: its Close writes, and may block. With
// reset set the kernel drops the unsent bytes and resets the connection, if there is a TCP socket below.
func hangUp(all *sync.WaitGroup, nc net.Conn, reset bool) {
	all.Go(func() {
		defer func() { _ = recover() }()
		below := transport(nc)
		if tcp, ok := below.(*net.TCPConn); ok && reset {
			_ = tcp.SetLinger(0) // best effort: the socket may be gone already
		}
		if _, secure := nc.(*tls.Conn); secure {
			nc = below
		}
		_ = nc.Close()
	})
}

// transport is the connection below nc, or nc itself.
func transport(nc net.Conn) net.Conn {
	if wrapped, ok := nc.(interface{ NetConn() net.Conn }); ok {
		return wrapped.NetConn()
	}
	return nc
}

func (f *Fleet) mayAdopt(n *node, id identity) error {
	if f.closed {
		return ErrClosed
	}
	if id.RunID != "" {
		if other := f.servers.claim(id.RunID, n); other != nil {
			return fmt.Errorf("%w, %s", ErrSameServer, other.addr)
		}
	}
	if f.cfg.Accept != nil {
		if err := f.cfg.Accept(n.index, n.says(&id)); err != nil {
			f.servers.leave(id.RunID, n)
			return err
		}
	}
	return nil
}

// first holds the nodes in their first dial. The lock protects it.
type first struct {
	began   time.Time
	last    time.Time     // when the last of the dials ended so far has
	dialing quorum.Set    // nodes whose dial has not
	changed chan struct{} // closed by the end of the next dial
}

// ended notes the end of a node's dial.
func (f *first) ended(node int) {
	if !f.dialing.Has(node) {
		return
	}
	f.last = time.Now()
	f.dialing.Remove(node)
	close(f.changed)
	f.changed = make(chan struct{})
}

// AwaitFirst waits until the first dial of every node has succeeded or failed, or those of a quorum have succeeded and
// the others have had their time, or done is closed, or the fleet. It does not wait for a Dialer that outlives its
// context. It is called without the lock. A nil isQuorum waits for every node.
func (f *Fleet) AwaitFirst(done <-chan struct{}, isQuorum func(up quorum.Set) bool) {
	bound := 2*f.cfg.DialTimeout + overrun // of the look-up and the connect
	if f.cfg.Credentials != nil {
		bound += CredentialsTimeout
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		f.lock.Lock()
		first, up := f.first, quorum.First(len(f.nodes))&^f.away
		closed := f.closed
		f.lock.Unlock()
		until := first.began.Add(bound)
		if isQuorum != nil && isQuorum(up) {
			until = first.last.Add(first.last.Sub(first.began) + f.cfg.knobs.Stragglers)
		}
		left := time.Until(until)
		if first.dialing == 0 || closed || left <= 0 {
			return
		}
		timer.Reset(left)
		select {
		case <-first.changed:
		case <-timer.C:
		case <-f.ctx.Done():
		case <-done:
			return
		}
	}
}
