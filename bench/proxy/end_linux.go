package proxy

import (
	"container/heap"
	"errors"
	"math/rand/v2"
	"syscall"
	"time"
)

// end is one end of a connection: a socket, and what is under way to it.
type end struct {
	node  *node
	fd    int // -1 once it is closed
	other *end

	chunks    []chunk
	last      time.Time // when the last chunk is due
	ended     bool      // no more chunks come: the other end has sent all
	shut      bool      // and so was the end of it
	scheduled bool      // it is in the agenda
	over      bool      // the peer has sent all, some of which may not be read yet
}

// chunk is the bytes of one read, and when they may leave.
type chunk struct {
	due   time.Time
	bytes []byte
}

// link joins a client's socket to one to the backend, which may still be
// connecting.
func link(n *node, client, backend int) error {
	a := &end{node: n, fd: client}
	b := &end{node: n, fd: backend, other: a}
	a.other = b
	const edge = 1 << 31 // EPOLLET, which package syscall has as a negative number
	for _, e := range []*end{a, b} {
		n.loop.ends[e.fd] = e
		if err := n.loop.watch(e.fd, syscall.EPOLLIN|syscall.EPOLLOUT|syscall.EPOLLRDHUP|edge); err != nil {
			return err
		}
	}
	return nil
}

// wake moves what can be moved.
func (e *end) wake() {
	e.flush()
	e.read()
}

// read takes what has arrived, and puts it under way to the other end. What
// follows a short read has an event of its own, but for an end that was there
// already.
func (e *end) read() {
	out, buf := e.other, e.node.loop.buf
	for e.fd >= 0 && !out.ended && e.node.carries() {
		n, err := syscall.Read(e.fd, buf)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EAGAIN):
			return
		case err != nil:
			e.reset()
			return
		case n == 0:
			out.ended = true
		default:
			out.push(append([]byte(nil), buf[:n]...))
		}
		out.flush()
		if n > 0 && n < len(buf) && !e.over {
			return
		}
	}
}

// push takes bytes that have just arrived. They leave after the delay, but not
// before what came earlier: a connection keeps its order under jitter, too.
func (e *end) push(bytes []byte) {
	delay := e.node.delay / 2
	if jitter := e.node.jitter / 2; jitter > 0 {
		delay += rand.N(jitter)
	}
	if due := time.Now().Add(delay); due.After(e.last) {
		e.last = due
	}
	e.chunks = append(e.chunks, chunk{e.last, bytes})
}

// flush writes what is due, and sees to what is not.
func (e *end) flush() {
	for e.fd >= 0 && e.node.carries() && len(e.chunks) > 0 {
		first := &e.chunks[0]
		if first.due.After(time.Now()) {
			if !e.scheduled {
				e.scheduled = true
				heap.Push(&e.node.loop.late, appointment{first.due, e})
			}
			return
		}
		n, err := syscall.Write(e.fd, first.bytes)
		switch {
		case errors.Is(err, syscall.EAGAIN):
			return // there will be an event
		case err != nil && !errors.Is(err, syscall.EINTR):
			e.reset()
			return
		}
		if first.bytes = first.bytes[max(n, 0):]; len(first.bytes) == 0 {
			first.bytes = nil
			e.chunks = e.chunks[1:]
		}
	}
	if e.fd >= 0 && len(e.chunks) == 0 && e.ended && !e.shut {
		e.shut = true
		_ = syscall.Shutdown(e.fd, syscall.SHUT_WR)
		if e.other.shut {
			e.close()
		}
	}
}

// close ends a connection.
func (e *end) close() {
	for _, x := range []*end{e, e.other} {
		if x.fd >= 0 {
			delete(x.node.loop.ends, x.fd)
			_ = syscall.Close(x.fd)
			x.fd = -1
		}
	}
}

// reset ends a connection the hard way, for both sides.
func (e *end) reset() {
	for _, x := range []*end{e, e.other} {
		if x.fd >= 0 {
			_ = syscall.SetsockoptLinger(x.fd, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1})
		}
	}
	e.close()
}
