package proxy

import (
	"container/heap"
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

// handler is what an event on a descriptor is for. It gets no flags: it tries
// to read or write, and learns from that. So it does not matter if the event
// was an older descriptor's of the same number.
type handler func() error

// loop waits for all events, on one thread.
type loop struct {
	epoll    int
	timer    int
	armed    time.Time // when the timer fires
	handlers map[int]handler
	late     agenda // ends of connections that have something to send later
	buf      []byte
	ended    bool
}

// serve carries between clients and backends until stdin ends.
func serve(backends []string) error {
	runtime.LockOSThread()
	l, err := newLoop()
	if err != nil {
		return err
	}
	var nodes []*node
	for _, backend := range backends {
		n, err := newNode(l, backend)
		if err != nil {
			return err
		}
		nodes = append(nodes, n)
		fmt.Println(n.addr)
	}
	o := orders{loop: l, nodes: nodes}
	if err := l.watch(syscall.Stdin, syscall.EPOLLIN, o.read); err != nil {
		return err
	}
	return l.run()
}

// newLoop makes an epoll instance and, since its own time limit is in whole
// milliseconds, a timer that is not.
func newLoop() (*loop, error) {
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	const monotonic = 1
	timer, _, errno := syscall.Syscall(syscall.SYS_TIMERFD_CREATE, monotonic, syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return nil, fmt.Errorf("timerfd: %w", errno)
	}
	l := &loop{epoll: epoll, timer: int(timer), handlers: map[int]handler{}, buf: make([]byte, 64<<10)}
	return l, l.watch(l.timer, syscall.EPOLLIN, func() error {
		l.armed = time.Time{}
		_, _ = syscall.Read(l.timer, l.buf[:8])
		return nil
	})
}

// watch has h called for events on fd.
func (l *loop) watch(fd int, events uint32, h handler) error {
	l.handlers[fd] = h
	event := syscall.EpollEvent{Events: events, Fd: int32(fd)}
	err := syscall.EpollCtl(l.epoll, syscall.EPOLL_CTL_ADD, fd, &event)
	if errors.Is(err, syscall.EEXIST) {
		err = syscall.EpollCtl(l.epoll, syscall.EPOLL_CTL_MOD, fd, &event)
	}
	return err
}

// ignore ends watch, also for errors, which epoll reports unasked.
func (l *loop) ignore(fd int) {
	delete(l.handlers, fd)
	_ = syscall.EpollCtl(l.epoll, syscall.EPOLL_CTL_DEL, fd, nil)
}

// close ends watch, and the descriptor.
func (l *loop) close(fd int) {
	l.ignore(fd)
	_ = syscall.Close(fd)
}

// run goes on until an order ends it.
func (l *loop) run() error {
	events := make([]syscall.EpollEvent, 256)
	for !l.ended {
		if err := l.sendDue(); err != nil {
			return err
		}
		n, err := syscall.EpollWait(l.epoll, events, -1)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return fmt.Errorf("epoll: %w", err)
		}
		for _, event := range events[:max(n, 0)] {
			if h := l.handlers[int(event.Fd)]; h != nil {
				if err := h(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// sendDue sends everything whose time has come, and sets the timer for what
// comes next.
func (l *loop) sendDue() error {
	for len(l.late) > 0 {
		e, now := l.late[0], time.Now()
		due := e.out.next()
		if due.After(now) {
			return l.arm(due, now)
		}
		heap.Remove(&l.late, e.place)
		e.flush()
	}
	return nil
}

// arm makes the loop wake up at the given time.
func (l *loop) arm(due, now time.Time) error {
	if due.Equal(l.armed) {
		return nil
	}
	l.armed = due
	var spec struct{ interval, value syscall.Timespec }
	spec.value = syscall.NsecToTimespec(max(due.Sub(now).Nanoseconds(), 1))
	_, _, errno := syscall.Syscall6(syscall.SYS_TIMERFD_SETTIME, uintptr(l.timer), 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("timerfd: %w", errno)
	}
	return nil
}

// schedule notes that e has something to send when the first of it is due.
func (l *loop) schedule(e *end) {
	if e.place < 0 {
		heap.Push(&l.late, e)
	}
}

// unschedule forgets it.
func (l *loop) unschedule(e *end) {
	if e.place >= 0 {
		heap.Remove(&l.late, e.place)
	}
}

// agenda is a heap of ends, by when they have something to send.
type agenda []*end

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].out.next().Before(a[j].out.next()) }
func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].place, a[j].place = i, j
}

// Push implements [heap.Interface].
func (a *agenda) Push(x any) {
	e := x.(*end)
	e.place = len(*a)
	*a = append(*a, e)
}

// Pop implements [heap.Interface].
func (a *agenda) Pop() any {
	last := len(*a) - 1
	e := (*a)[last]
	(*a)[last] = nil
	*a = (*a)[:last]
	e.place = -1
	return e
}
