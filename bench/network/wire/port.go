package wire

import (
	"container/heap"
	"errors"
	"os"
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
	sent   uint64
	queue  queue
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
	p.sent++
	heap.Push(&p.queue, queued{at, p.sent, append(packet(nil), b...)})
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
		_, _ = p.device.Write(heap.Pop(&p.queue).(queued).packet)
	}
	return time.Hour
}

// queued is a packet that waits.
type queued struct {
	at    history.Time
	place uint64 // among those of one time
	packet
}

// queue is a heap, the first that is due in front.
type queue []queued

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].place < q[j].place
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(queued)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
