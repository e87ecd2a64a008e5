//go:build linux && (amd64 || arm64 || riscv64 || loong64)

package conn

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"github.com/redlock-go/redlock/quorum"
)

// rawSupported reports that this system has the raw path.
const rawSupported = true

// epoll is the raw poller: three layers of epoll(7). One goroutine can wait for all nodes without blocking a thread,
// and a caller can wait for its own reply without a wake-up of that goroutine.
//
//	sockets → all (level-triggered) → readable (one shot) → the runtime's poller
//	late nodes' sockets → late (likewise) ↗
//
// A caller that waits itself blocks on all, in the kernel. The goroutine in the background is parked by the runtime
// on readable. readable reports all only after arm, and once per arm. While it is not armed, replies wake no thread
// but the caller's.
type epoll struct {
	all    int
	late   int        // all without the sockets of early nodes
	early  quorum.Set // nodes
	events [32]syscall.EpollEvent
	waker  *os.File // the wake descriptor: an eventfd(2) in all and late, to end a blocked poll

	readable   *os.File // the readable notification
	readableFD int
	raw        syscall.RawConn
	isReadable func(fd uintptr) bool // the callback of raw.Read; built once, or it would allocate
	event      [1]syscall.EpollEvent
}

const (
	sysEpollPwait2 = 441                                  // the same number on every architecture
	wakeEvent      = -1                                   // in place of a node's index
	watched        = syscall.EPOLLIN | syscall.EPOLLRDHUP // of each socket
)

func newRawPoller(nodes int) (_ poller, blocks bool, _ error) {
	p := &epoll{all: -1, late: -1, early: early(nodes)}
	if err := p.open(); err != nil {
		p.close()
		return nil, false, fmt.Errorf("conn: epoll: %w", err)
	}
	return p, true, nil
}

func (p *epoll) open() (err error) {
	if p.readableFD, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err != nil {
		return err
	}
	err = syscall.SetNonblock(p.readableFD, true) // or os.NewFile takes it for a blocking file
	p.readable = os.NewFile(uintptr(p.readableFD), "epoll")
	if err != nil {
		return err
	}
	if p.raw, err = p.readable.SyscallConn(); err != nil {
		return err
	}
	p.isReadable = func(fd uintptr) bool {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, fd,
			uintptr(unsafe.Pointer(&p.event[0])), 1, 0, 0, 0)
		return errno == 0 && n > 0
	}
	// The descriptor for Wake is an *os.File, to be written to even while it is being closed: a bare number could
	// belong to another file by then. It is a blocking one, so the runtime's poller leaves it alone. It is read only
	// when known to be readable, and writing blocks only after 2^64 wakes.
	waker, _, errno := syscall.Syscall(syscall.SYS_EVENTFD2, 0, syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return errno
	}
	p.waker = os.NewFile(waker, "eventfd")
	for _, fd := range []*int{&p.all, &p.late} {
		if *fd, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err != nil {
			return err
		}
		if err = p.ctl(p.readableFD, syscall.EPOLL_CTL_ADD, *fd, 0, 0); err != nil {
			return err
		}
		if err = p.ctl(*fd, syscall.EPOLL_CTL_ADD, int(waker), syscall.EPOLLIN, wakeEvent); err != nil {
			return err
		}
	}
	return nil
}

var once = binary.NativeEndian.AppendUint64(nil, 1)

func (p *epoll) Wake() {
	_, _ = p.waker.Write(once) // an error means closed, and then no goroutine waits
}

func (p *epoll) ctl(epfd, op, fd int, events uint32, data int32) error {
	return syscall.EpollCtl(epfd, op, fd, &syscall.EpollEvent{Events: events, Fd: data})
}

func (p *epoll) adopt(nc net.Conn, node int) (sock, error) {
	fd, err := detach(nc)
	if err != nil {
		return nil, err
	}
	s := &raw{fd: int32(fd), epoll: p, node: int32(node)}
	err = p.ctl(p.all, syscall.EPOLL_CTL_ADD, fd, watched, s.node)
	if err == nil && !p.early.Has(node) {
		err = p.ctl(p.late, syscall.EPOLL_CTL_ADD, fd, watched, s.node)
	}
	if err != nil {
		s.close(true)
		return nil, err
	}
	return s, nil
}

func (p *epoll) poll(d time.Duration) (nodes quorum.Set) {
	var n uintptr
	var errno syscall.Errno
	if d <= 0 {
		n, _, errno = syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(p.all),
			uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), 0, 0, 0)
	} else {
		// In the kernel, in a system call known to the scheduler.
		timeout := syscall.NsecToTimespec(int64(d))
		n, _, errno = syscall.Syscall6(sysEpollPwait2, uintptr(p.all),
			uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), uintptr(unsafe.Pointer(&timeout)), 0, 0)
		// Before Linux 5.11, and where a sandbox knows no newer calls: whole milliseconds.
		if errno == syscall.ENOSYS || errno == syscall.EPERM {
			ms := (d + time.Millisecond - 1) / time.Millisecond
			n, _, errno = syscall.Syscall6(syscall.SYS_EPOLL_PWAIT, uintptr(p.all),
				uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), uintptr(ms), 0, 0)
		}
	}
	if errno != 0 {
		return 0 // EINTR; nothing else can happen to a valid descriptor
	}
	for i := range p.events[:n] {
		if node := int(p.events[i].Fd); node == wakeEvent {
			var count [8]byte
			_, _ = p.waker.Read(count[:]) // resets it
		} else {
			nodes.Add(node)
		}
	}
	return nodes
}

func (p *epoll) Arm(late bool) {
	fd := p.all
	if late {
		fd = p.late
	}
	_ = p.ctl(p.readableFD, syscall.EPOLL_CTL_MOD, fd, syscall.EPOLLIN|syscall.EPOLLONESHOT, 0)
}

func (p *epoll) Wait() bool { return p.raw.Read(p.isReadable) == nil }

func (p *epoll) close() {
	_ = p.readable.Close() // ends Wait
	_ = p.waker.Close()
	_ = syscall.Close(p.all)
	_ = syscall.Close(p.late)
	p.readableFD, p.all, p.late = -1, -1, -1 // the numbers may belong to other files now
}
