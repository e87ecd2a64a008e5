package proxy

import (
	"errors"
	"syscall"
	"time"
)

// end is one end of a link: a socket, and what is under way to it.
type end struct {
	node  *node
	fd    int
	other *end
	out   queue
	place int  // in the agenda, or -1
	full  bool // the socket takes no more for now
	shut  bool // all that will ever come has been sent, and so was the end of it
}

// link joins a client's socket to one to the backend, which may still be
// connecting.
func link(n *node, client, backend int) error {
	a := &end{node: n, fd: client, place: -1}
	b := &end{node: n, fd: backend, place: -1, full: true, other: a}
	a.other = b
	for _, e := range []*end{a, b} {
		n.ends[e] = struct{}{}
		if err := e.listen(); err != nil {
			return err
		}
	}
	return nil
}

// listen asks for the events that the end can do something about.
func (e *end) listen() error {
	var events uint32
	if !e.other.out.ended {
		events = syscall.EPOLLIN
	}
	if e.full {
		events |= syscall.EPOLLOUT
	}
	return e.node.loop.watch(e.fd, events, e.wake)
}

// wake moves what can be moved.
func (e *end) wake() error {
	if e.full {
		e.full = false
		e.flush()
		if e.fd < 0 {
			return nil
		}
	}
	if !e.other.out.ended {
		e.read()
	}
	if e.fd < 0 {
		return nil
	}
	return e.listen()
}

// read takes what has arrived, and puts it under way to the other end.
func (e *end) read() {
	n, err := syscall.Read(e.fd, e.node.loop.buf)
	switch {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EINTR):
		return
	case err != nil:
		e.reset()
		return
	}
	out := &e.other.out
	if n == 0 {
		out.ended = true
	} else {
		bytes := append([]byte(nil), e.node.loop.buf[:n]...)
		out.push(time.Now(), bytes, e.node.delay/2, e.node.jitter/2)
	}
	if !e.other.full {
		e.other.flush()
	}
}

// flush writes what is due, and sees to what is not.
func (e *end) flush() {
	for {
		now := time.Now()
		bytes := e.out.ready(now)
		if len(bytes) == 0 {
			break
		}
		n, err := syscall.Write(e.fd, bytes)
		if errors.Is(err, syscall.EAGAIN) {
			e.full = true
			if e.listen() != nil {
				e.reset()
			}
			return
		}
		if err != nil && !errors.Is(err, syscall.EINTR) {
			e.reset()
			return
		}
		e.out.taken(max(n, 0))
	}
	switch {
	case len(e.out.chunks) > 0:
		e.node.loop.schedule(e)
	case e.out.ended && !e.shut:
		e.shut = true
		_ = syscall.Shutdown(e.fd, syscall.SHUT_WR)
		if e.other.shut {
			e.close()
		} else if e.listen() != nil {
			e.reset()
		}
	}
}

// close ends a link.
func (e *end) close() {
	for _, x := range []*end{e, e.other} {
		if x.fd >= 0 {
			x.node.loop.unschedule(x)
			x.node.loop.close(x.fd)
			x.fd = -1
			delete(x.node.ends, x)
		}
	}
}

// reset ends a link the hard way, for both sides.
func (e *end) reset() {
	for _, x := range []*end{e, e.other} {
		if x.fd >= 0 {
			_ = syscall.SetsockoptLinger(x.fd, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1})
		}
	}
	e.close()
}

// pause carries nothing any more, and hears of nothing.
func (e *end) pause() {
	e.node.loop.unschedule(e)
	e.node.loop.ignore(e.fd)
}

// resume goes on where pause has stopped.
func (e *end) resume() error {
	e.full = true // finds out by trying
	return e.listen()
}
