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

// state says which traffic a node lets through.
type state int

const (
	passing state = iota
	hanging
	refusing
	swallowing
)

// node stands in place of one backend: clients dial it.
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
}

// newNode listens on a free port of loopback.
func newNode(l *loop, backend string) (*node, error) {
	tcp, err := net.ResolveTCPAddr("tcp", backend)
	if err != nil {
		return nil, err
	}
	n := &node{loop: l, local: &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}}
	if ip := tcp.IP.To4(); ip != nil {
		n.family, n.backend = syscall.AF_INET, &syscall.SockaddrInet4{Port: tcp.Port, Addr: [4]byte(ip)}
	} else {
		n.family, n.backend = syscall.AF_INET6, &syscall.SockaddrInet6{Port: tcp.Port, Addr: [16]byte(tcp.IP.To16())}
	}
	if err := n.listen(backlog); err != nil {
		return nil, err
	}
	n.local, err = syscall.Getsockname(n.listener) // it is the same from now on
	if err != nil {
		return nil, os.NewSyscallError("getsockname", err)
	}
	n.addr = fmt.Sprintf("127.0.0.1:%d", n.local.(*syscall.SockaddrInet4).Port)
	return n, nil
}

// listen opens the listener. Nothing is accepted but while the node passes.
func (n *node) listen(backlog int) error {
	fd, err := socket(syscall.AF_INET)
	if err != nil {
		return err
	}
	n.listener = fd
	return errors.Join(
		syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1),
		os.NewSyscallError("bind", syscall.Bind(fd, n.local)),
		os.NewSyscallError("listen", syscall.Listen(fd, backlog)),
		n.watch())
}

// watch waits for clients, if the node passes.
func (n *node) watch() error {
	if n.state != passing {
		return nil
	}
	return n.loop.watch(n.listener, syscall.EPOLLIN)
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

func socket(family int) (int, error) {
	fd, err := syscall.Socket(family, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	return fd, os.NewSyscallError("socket", err)
}

// dial begins to connect.
func dial(family int, to syscall.Sockaddr) (int, error) {
	fd, err := socket(family)
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

// carries tells whether what is under way goes on.
func (n *node) carries() bool { return n.state == passing || n.state == refusing }

// become changes what the node lets through, by way of passing.
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
		return os.NewSyscallError("epoll_ctl", syscall.EpollCtl(n.loop.epoll, syscall.EPOLL_CTL_DEL, n.listener, nil))
	case refusing:
		_ = syscall.Close(n.listener)
		for _, e := range n.ends() {
			e.reset()
		}
	case swallowing:
		_ = syscall.Close(n.listener)
		return n.swallow()
	}
	return nil
}

// pass lets everything through again.
func (n *node) pass() (err error) {
	was := n.state
	n.state = passing
	switch was {
	case hanging:
		err = n.watch()
	case swallowing:
		for _, fd := range append(n.fillers, n.listener) {
			_ = syscall.Close(fd)
		}
		n.fillers = nil
		err = n.listen(backlog)
	case refusing:
		err = n.listen(backlog)
	}
	for _, e := range n.ends() {
		e.wake() // its events have gone by
	}
	return err
}

// ends are those of the node's connections.
func (n *node) ends() (all []*end) {
	for _, e := range n.loop.ends {
		if e.node == n {
			all = append(all, e)
		}
	}
	return all
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
