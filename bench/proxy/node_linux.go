package proxy

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// backlog is more than any burst of dials.
const backlog = 4096

// state is what a node lets through.
type state int

const (
	passing state = iota
	hanging
	refusing
	swallowing
)

// node is what clients dial in place of one backend.
type node struct {
	loop    *loop
	addr    string
	local   syscall.Sockaddr
	backend syscall.Sockaddr
	family  int

	state    state
	listener int
	fillers  []int // that keep the listener of a black hole full
	delay    time.Duration
	jitter   time.Duration
	ends     map[*end]struct{}
}

// newNode listens on a free port of loopback.
func newNode(l *loop, backend string) (*node, error) {
	tcp, err := net.ResolveTCPAddr("tcp", backend)
	if err != nil {
		return nil, err
	}
	n := &node{loop: l, ends: map[*end]struct{}{}, local: &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}}
	if ip := tcp.IP.To4(); ip != nil {
		n.family, n.backend = syscall.AF_INET, &syscall.SockaddrInet4{Port: tcp.Port, Addr: [4]byte(ip)}
	} else {
		n.family, n.backend = syscall.AF_INET6, &syscall.SockaddrInet6{Port: tcp.Port, Addr: [16]byte(tcp.IP.To16())}
	}
	if err := n.listen(backlog); err != nil {
		return nil, err
	}
	bound, err := syscall.Getsockname(n.listener)
	if err != nil {
		return nil, os.NewSyscallError("getsockname", err)
	}
	n.local = bound // it is the same from now on
	n.addr = fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port)
	return n, nil
}

// listen opens the listener.
func (n *node) listen(backlog int) error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	n.listener = fd
	err = errors.Join(
		syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1),
		os.NewSyscallError("bind", syscall.Bind(fd, n.local)),
		os.NewSyscallError("listen", syscall.Listen(fd, backlog)))
	if err == nil && n.state == passing {
		err = n.loop.watch(fd, syscall.EPOLLIN, n.accept)
	}
	return err
}

// accept joins a client to the backend.
func (n *node) accept() error {
	client, _, err := syscall.Accept4(n.listener, syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
	if err != nil {
		return nil // it has gone, or it was none
	}
	backend, err := dial(n.family, n.backend)
	if err != nil {
		_ = syscall.Close(client)
		return nil
	}
	_ = syscall.SetsockoptInt(client, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
	return link(n, client, backend)
}

// dial begins to connect.
func dial(family int, to syscall.Sockaddr) (int, error) {
	fd, err := syscall.Socket(family, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
	if err := syscall.Connect(fd, to); err != nil && !errors.Is(err, syscall.EINPROGRESS) {
		_ = syscall.Close(fd)
		return 0, err
	}
	return fd, nil
}

// become changes what the node lets through.
func (n *node) become(next state) error {
	if n.state == next {
		return nil
	}
	if n.state != passing {
		if err := n.pass(); err != nil {
			return err
		}
	}
	n.state = next
	switch next {
	case hanging:
		n.loop.ignore(n.listener)
		n.pause()
	case refusing:
		n.loop.close(n.listener)
		for e := range n.ends {
			e.reset()
		}
	case swallowing:
		n.loop.close(n.listener)
		n.pause()
		return n.swallow()
	}
	return nil
}

// pass lets everything through again.
func (n *node) pass() error {
	was := n.state
	n.state = passing
	for _, fd := range n.fillers {
		_ = syscall.Close(fd)
	}
	n.fillers = nil
	var err error
	switch was {
	case hanging:
		err = n.loop.watch(n.listener, syscall.EPOLLIN, n.accept)
	case swallowing:
		n.loop.close(n.listener)
		fallthrough
	case refusing:
		err = n.listen(backlog)
	}
	for e := range n.ends {
		err = errors.Join(err, e.resume())
	}
	return err
}

// pause stops everything that is under way.
func (n *node) pause() {
	for e := range n.ends {
		e.pause()
	}
}

// swallow makes the kernel drop every connect: it does so where the queue of
// those to be accepted is full.
func (n *node) swallow() error {
	if err := n.listen(0); err != nil {
		return err
	}
	const plenty = 4
	for range plenty {
		fd, err := dial(syscall.AF_INET, n.local)
		if err != nil {
			return err
		}
		n.fillers = append(n.fillers, fd)
	}
	return nil
}
