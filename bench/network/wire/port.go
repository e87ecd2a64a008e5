package wire

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/redlock-go/redlock/bench/network/history"
)

// port is the wire's end at a host.
type port struct {
	device *os.File
	wake   chan struct{}
	gone   chan struct{} // the device is closed
	mu     sync.Mutex
	queue  []queued // by at, and those of one time as they were sent
}

// read hands over what the host sends.
func (p *port) read(pass func(packet)) {
	defer close(p.gone)
	for b := make([]byte, 1<<16); ; {
		n, err := p.device.Read(b)
		if errors.Is(err, os.ErrClosed) {
			return
		} else if err != nil {
			time.Sleep(time.Millisecond) // the link is down
			continue
		}
		pass(b[:n])
	}
}

// send has the host receive b at a time, or now. A link that is down loses it.
func (p *port) send(b packet, at history.Time) {
	if at == 0 {
		_, _ = p.device.Write(b)
		return
	}
	p.mu.Lock()
	i, _ := slices.BinarySearchFunc(p.queue, at+1, func(q queued, t history.Time) int { return cmp.Compare(q.at, t) })
	p.queue = slices.Insert(p.queue, i, queued{at, slices.Clone(b)})
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// write delivers what waits, when it is due.
func (p *port) write() {
	timer := time.NewTimer(time.Hour)
	for {
		timer.Reset(p.deliver())
		select {
		case <-p.wake:
		case <-timer.C:
		case <-p.gone:
			return
		}
	}
}

// deliver writes all that is due, and returns how long the next has to wait.
func (p *port) deliver() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) > 0 {
		if wait := p.queue[0].at.Sub(history.Now()); wait > 0 {
			return wait
		}
		_, _ = p.device.Write(p.queue[0].packet)
		p.queue = p.queue[1:]
	}
	return time.Hour
}

// queued is a packet that waits.
type queued struct {
	at history.Time
	packet
}
