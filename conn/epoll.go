//go:build linux && (amd64 || arm64 || riscv64 || loong64)

package conn

import (
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// rawSupported says that this system has the raw path.
const rawSupported = true

// epoll is the raw poller: three layers of epoll(7), so that one goroutine can
// wait for all nodes without a thread of its own, and a caller can wait for its
// own reply without that goroutine being woken for it.
//
//	sockets → all (level-triggered) → bell (one shot) → the runtime's poller
//
// A caller that waits itself blocks on all, in the kernel. The goroutine that
// waits in the background is parked by the runtime on bell, which reports all
// only after arm, and once per arm. While nobody armed it, replies wake no
// thread but the caller's.
type epoll struct {
	all    int
	events [32]syscall.EpollEvent

	bell   *os.File
	bellFD int
	raw    syscall.RawConn
	rung   func(fd uintptr) bool // what raw.Read calls; built once, or it would allocate
	ring   [1]syscall.EpollEvent
}

const sysEpollPwait2 = 441 // the same number on every architecture

func newRawPoller() (poller, error) {
	p := new(epoll)
	var err error
	if p.all, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("conn: epoll_create1: %w", err)
	}
	if p.bellFD, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err != nil {
		syscall.Close(p.all)
		return nil, fmt.Errorf("conn: epoll_create1: %w", err)
	}
	err = p.ctl(p.bellFD, syscall.EPOLL_CTL_ADD, p.all, 0, 0)
	if err == nil {
		err = syscall.SetNonblock(p.bellFD, true) // or os.NewFile takes it for a blocking file
	}
	if err == nil {
		p.bell = os.NewFile(uintptr(p.bellFD), "epoll")
		p.raw, err = p.bell.SyscallConn()
	}
	if err != nil {
		syscall.Close(p.all)
		syscall.Close(p.bellFD)
		return nil, fmt.Errorf("conn: nested epoll: %w", err)
	}
	p.rung = func(fd uintptr) bool {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, fd,
			uintptr(unsafe.Pointer(&p.ring[0])), 1, 0, 0, 0)
		return errno == 0 && n > 0
	}
	return p, nil
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
	if err := p.ctl(p.all, syscall.EPOLL_CTL_ADD, fd, syscall.EPOLLIN|syscall.EPOLLRDHUP, s.node); err != nil {
		s.close(true)
		return nil, err
	}
	return s, nil
}

// watch switches the report of room to write on or off.
func (p *epoll) watch(s *raw, write bool) {
	events := uint32(syscall.EPOLLIN | syscall.EPOLLRDHUP)
	if write {
		events |= syscall.EPOLLOUT
	}
	_ = p.ctl(p.all, syscall.EPOLL_CTL_MOD, int(s.fd), events, s.node)
}

func (p *epoll) canBlock() bool { return true }

func (p *epoll) poll(d time.Duration, nodes []int) []int {
	var n uintptr
	var errno syscall.Errno
	if d <= 0 {
		n, _, errno = syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(p.all),
			uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), 0, 0, 0)
	} else {
		n, errno = p.block(d)
	}
	if errno != 0 {
		return nodes // EINTR; nothing else can happen to a valid descriptor
	}
	for i := range p.events[:n] {
		nodes = append(nodes, int(p.events[i].Fd))
	}
	return nodes
}

// block waits in the kernel, with the scheduler told of it.
func (p *epoll) block(d time.Duration) (uintptr, syscall.Errno) {
	timeout := syscall.NsecToTimespec(int64(d))
	n, _, errno := syscall.Syscall6(sysEpollPwait2, uintptr(p.all),
		uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), uintptr(unsafe.Pointer(&timeout)), 0, 0)
	// Before Linux 5.11, and where a sandbox knows no newer calls: whole
	// milliseconds.
	if errno == syscall.ENOSYS || errno == syscall.EPERM {
		ms := (d + time.Millisecond - 1) / time.Millisecond
		n, _, errno = syscall.Syscall6(syscall.SYS_EPOLL_PWAIT, uintptr(p.all),
			uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), uintptr(ms), 0, 0)
	}
	return n, errno
}

func (p *epoll) arm() {
	_ = p.ctl(p.bellFD, syscall.EPOLL_CTL_MOD, p.all, syscall.EPOLLIN|syscall.EPOLLONESHOT, 0)
}

func (p *epoll) wait() bool {
	return p.raw.Read(p.rung) == nil
}

func (p *epoll) close() {
	_ = p.bell.Close() // ends wait
	_ = syscall.Close(p.all)
}
