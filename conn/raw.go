//go:build linux && (amd64 || arm64 || riscv64 || loong64)

package conn

import (
	"errors"
	"io"
	"net"
	"syscall"
	"unsafe"
)

// raw is a socket as a bare descriptor, closed by this package only. It is used with RawSyscall: none of its calls
// can sleep, so the scheduler need not know of them.
type raw struct {
	fd    int32
	epoll *epoll
	node  int32
	full  bool // the kernel took less than it was given: wait for EPOLLOUT
}

// detach takes the descriptor out of a net.Conn and the runtime's poller. The description behind it, with its options
// and O_NONBLOCK, stays the same.
func detach(nc net.Conn) (int, error) {
	defer nc.Close()
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return -1, errors.New("no descriptor behind this connection")
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return -1, err
	}
	var fd uintptr
	var errno syscall.Errno
	err = rc.Control(func(own uintptr) {
		fd, _, errno = syscall.Syscall(syscall.SYS_FCNTL, own, syscall.F_DUPFD_CLOEXEC, 0)
	})
	if err == nil && errno != 0 {
		err = errno
	}
	return int(fd), err
}

// call sends or receives, and does not wait.
func (s *raw) call(trap uintptr, b []byte, flags uintptr) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall6(trap, uintptr(s.fd),
			uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), syscall.MSG_DONTWAIT|flags, 0, 0)
		switch errno {
		case 0:
			return int(n), 0
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}

func (s *raw) send(b []byte) (int, error) {
	// MSG_NOSIGNAL: a reset socket answers EPIPE and raises no signal in a process that may watch for SIGPIPE.
	n, errno := s.call(syscall.SYS_SENDTO, b, syscall.MSG_NOSIGNAL)
	if errno != 0 && errno != syscall.EAGAIN {
		return 0, errno
	}
	if full := n < len(b); full != s.full {
		s.full = full
		events := uint32(watched)
		if full { // a report when there is room again
			events |= syscall.EPOLLOUT
		}
		_ = s.epoll.ctl(s.epoll.all, syscall.EPOLL_CTL_MOD, int(s.fd), events, s.node)
	}
	return n, nil
}

func (s *raw) recv(b []byte) (int, error) {
	n, errno := s.call(syscall.SYS_RECVFROM, b, 0)
	switch {
	case errno == syscall.EAGAIN:
		return 0, nil
	case errno != 0:
		return 0, errno
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

func (s *raw) close(reset bool) {
	if reset {
		_ = syscall.SetsockoptLinger(int(s.fd), syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1})
	}
	// Closing takes it out of epoll too, but not while a child process, just being started, has a copy.
	_ = s.epoll.ctl(s.epoll.all, syscall.EPOLL_CTL_DEL, int(s.fd), 0, 0)
	_ = s.epoll.ctl(s.epoll.late, syscall.EPOLL_CTL_DEL, int(s.fd), 0, 0)
	_ = syscall.Close(int(s.fd))
}
