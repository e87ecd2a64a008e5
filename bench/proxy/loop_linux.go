package proxy

import (
	"bytes"
	"container/heap"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

// loop waits for all events, on one thread. Connections are watched by the edge,
// once and for both directions, so there is nothing to change while they live.
type loop struct {
	epoll int
	timer int
	armed time.Time // when the timer fires
	late  agenda    // ends that have something to send later
	nodes []*node
	ends  map[int]*end // by descriptor
	buf   []byte
	line  []byte // of orders, the last one not yet whole
}

// serve carries between clients and backends until standard input ends.
func serve(backends []string) error {
	runtime.LockOSThread()
	l, err := newLoop()
	if err != nil {
		return err
	}
	for _, backend := range backends {
		n, err := newNode(l, backend)
		if err != nil {
			return err
		}
		l.nodes = append(l.nodes, n)
		fmt.Println(n.addr)
	}
	events := make([]syscall.EpollEvent, 256)
	for {
		if err := l.sendDue(); err != nil {
			return err
		}
		n, err := syscall.EpollWait(l.epoll, events, -1)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("epoll_wait", err)
		}
		for _, event := range events[:max(n, 0)] {
			if ended, err := l.event(int(event.Fd), event.Events); ended || err != nil {
				return err
			}
		}
	}
}

// newLoop makes an epoll instance and, since its own time limit is in whole
// milliseconds, a timer that is not.
func newLoop() (*loop, error) {
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	const monotonic = 1
	timer, _, errno := syscall.Syscall(syscall.SYS_TIMERFD_CREATE, monotonic, syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return nil, os.NewSyscallError("timerfd_create", errno)
	}
	l := &loop{epoll: epoll, timer: int(timer), ends: map[int]*end{}, buf: make([]byte, 64<<10)}
	return l, errors.Join(l.watch(l.timer, syscall.EPOLLIN), l.watch(syscall.Stdin, syscall.EPOLLIN))
}

// watch waits for events on a descriptor, until it is closed.
func (l *loop) watch(fd int, events uint32) error {
	event := syscall.EpollEvent{Events: events, Fd: int32(fd)}
	return os.NewSyscallError("epoll_ctl", syscall.EpollCtl(l.epoll, syscall.EPOLL_CTL_ADD, fd, &event))
}

// event handles an event on a descriptor. It learns from trying, so it
// does not matter if the event was an older descriptor's of the same number.
func (l *loop) event(fd int, events uint32) (ended bool, err error) {
	switch fd {
	case l.timer:
		l.armed = time.Time{}
		_, _ = syscall.Read(l.timer, l.buf[:8])
		return false, nil
	case syscall.Stdin:
		return l.orders()
	}
	if e := l.ends[fd]; e != nil {
		e.over = e.over || events&(syscall.EPOLLRDHUP|syscall.EPOLLHUP|syscall.EPOLLERR) != 0
		e.wake()
		return false, nil
	}
	for _, n := range l.nodes {
		if n.listener == fd && n.state == passing {
			return false, n.accept()
		}
	}
	return false, nil
}

// sendDue sends everything whose time has come, and sets the timer for what
// comes next.
func (l *loop) sendDue() error {
	for len(l.late) > 0 {
		now := time.Now()
		if due := l.late[0].due; due.After(now) {
			return l.arm(due, now)
		}
		e := heap.Pop(&l.late).(appointment).end
		e.scheduled = false
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
		return os.NewSyscallError("timerfd_settime", errno)
	}
	return nil
}

// orders carries out what the parent has written, one order a line.
func (l *loop) orders() (ended bool, err error) {
	n, err := syscall.Read(syscall.Stdin, l.buf)
	if n == 0 || err != nil {
		return true, os.NewSyscallError("read", err)
	}
	l.line = append(l.line, l.buf[:n]...)
	for {
		line, rest, whole := bytes.Cut(l.line, []byte("\n"))
		if !whole {
			return false, nil
		}
		if err := l.obey(string(line)); err != nil {
			fmt.Println(err)
		} else {
			fmt.Println(done)
		}
		l.line = append(l.line[:0], rest...)
	}
}

// obey carries out one order.
func (l *loop) obey(line string) error {
	var (
		what          string
		i             int
		delay, jitter int64
	)
	if n, _ := fmt.Sscan(line, &what, &i, &delay, &jitter); n < 2 || i < 0 || i >= len(l.nodes) {
		return fmt.Errorf("cannot read %q", line)
	}
	if what == "delay" {
		l.nodes[i].delay, l.nodes[i].jitter = time.Duration(delay), time.Duration(jitter)
		return nil
	}
	next, is := map[string]state{"pass": passing, "hang": hanging, "refuse": refusing, "blackhole": swallowing}[what]
	if !is {
		return fmt.Errorf("no such order: %q", line)
	}
	return l.nodes[i].become(next)
}

// appointment is when an end has something to send.
type appointment struct {
	due time.Time
	end *end
}

// agenda is a heap of them.
type agenda []appointment

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].due.Before(a[j].due) }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }

// Push implements [heap.Interface].
func (a *agenda) Push(x any) { *a = append(*a, x.(appointment)) }

// Pop implements [heap.Interface].
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}
