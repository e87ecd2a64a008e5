package conn

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/quorum"
)

// pumpBuffer bounds what a pump holds in each direction before it applies
// backpressure: to the kernel when reading, to the backlog when writing.
const pumpBuffer = 64 << 10

// pump is the portable sock: a net.Conn, one goroutine blocked in its Read, and one that writes. It serves every
// system without a raw path, TLS, and custom dialers. It may hold data back, but its caller never waits.
type pump struct {
	nc     net.Conn
	node   int
	poller *pumpPoller

	mu       sync.Mutex
	readable sync.Cond // the read buffer has room again, or the pump closed
	writable sync.Cond // there is something to write, or the pump closed
	in, out  []byte
	spare    []byte // swapped with out by the writer
	full     bool   // a send came up short: report when there is room
	err      error  // the first failure, reported after the bytes read before it
	closed   bool
}

func (p *pump) send(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return 0, p.err
	}
	n := min(len(b), pumpBuffer-len(p.out))
	p.out = append(p.out, b[:n]...)
	p.full = n < len(b)
	p.writable.Signal()
	return n, nil
}

func (p *pump) recv(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.in) == 0 {
		return 0, p.err
	}
	n := copy(b, p.in)
	p.in = p.in[:copy(p.in, p.in[n:])]
	p.readable.Signal()
	if len(p.in) > 0 || p.err != nil {
		// The caller may stop here, and the report that has led it here may have been of the rest too.
		p.poller.report(p.node)
	}
	return n, nil
}

func (p *pump) close(reset bool) {
	p.mu.Lock()
	p.closed = true
	p.fail(net.ErrClosed)
	p.mu.Unlock()
	hangUp(p.poller.pumps, p.nc, reset)
}

// recover turns a panic of a Dialer's connection, or the end of our goroutine by it, into a failure of the
// connection. A goroutine that returns has noted its failure before.
func (p *pump) recover() {
	v := recover()
	p.mu.Lock()
	broken := p.err == nil
	if broken {
		p.fail(brokenOff("in the dialer's connection", v))
	}
	p.mu.Unlock()
	if broken {
		p.poller.report(p.node)
	}
}

// fail records the first failure and frees both goroutines. p.mu is held.
func (p *pump) fail(err error) {
	if p.err == nil {
		p.err = err
	}
	p.readable.Signal()
	p.writable.Signal()
}

func (p *pump) readLoop() {
	defer p.recover()
	buf := make([]byte, readBuffer)
	for {
		n, err := p.nc.Read(buf)
		read := buf[:n] // may panic, as may what follows
		if err != nil {
			err = ofUser(err)
		}
		p.mu.Lock()
		for len(p.in)+n > pumpBuffer && !p.closed {
			p.readable.Wait()
		}
		p.in = append(p.in, read...)
		if err != nil {
			p.fail(err)
		}
		closed := p.closed
		p.mu.Unlock()
		if !closed {
			p.poller.report(p.node)
		}
		if err != nil || closed {
			return
		}
	}
}

func (p *pump) writeLoop() {
	defer p.recover()
	for {
		p.mu.Lock()
		for len(p.out) == 0 && p.err == nil {
			p.writable.Wait()
		}
		if p.err != nil {
			p.mu.Unlock()
			return
		}
		b := p.out
		p.out, p.spare = p.spare[:0], b
		full := p.full
		p.full = false
		p.mu.Unlock()
		if full {
			p.poller.report(p.node)
		}
		if _, err := p.nc.Write(b); err != nil {
			err = ofUser(err)
			p.mu.Lock()
			p.fail(err)
			p.mu.Unlock()
			p.poller.report(p.node)
			return
		}
	}
}

// pumpPoller collects the reports of the pumps.
type pumpPoller struct {
	reported quorum.SharedSet // and not yet polled
	closed   atomic.Bool
	readable chan struct{} // the readable notification; one is kept
	pumps    *sync.WaitGroup
}

func (pp *pumpPoller) adopt(nc net.Conn, node int) (sock, error) {
	p := &pump{nc: nc, node: node, poller: pp}
	p.readable.L, p.writable.L = &p.mu, &p.mu
	pp.pumps.Go(p.readLoop)
	pp.pumps.Go(p.writeLoop)
	return p, nil
}

func (pp *pumpPoller) report(node int) {
	pp.reported.Add(node)
	pp.Wake()
}

func (pp *pumpPoller) poll(time.Duration) quorum.Set { return pp.reported.Swap(0) }

// Arm has nothing to do: every report ends a Wait.
func (pp *pumpPoller) Arm(bool) {}

func (pp *pumpPoller) Wait() bool {
	<-pp.readable
	if pp.closed.Load() {
		pp.Wake() // for the next Wait
		return false
	}
	return true
}

// Wake ends a Wait; poll never blocks.
func (pp *pumpPoller) Wake() {
	select {
	case pp.readable <- struct{}{}:
	default:
	}
}

func (pp *pumpPoller) close() {
	pp.closed.Store(true)
	pp.Wake()
}
