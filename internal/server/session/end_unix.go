//go:build unix && !aix

package session

import (
	"net"
	"syscall"
)

// peekEnd is watchEnd for a socket.
func peekEnd(conn net.Conn) func() bool {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	var first [1]byte
	hasEnded := false
	look := func(fd uintptr) {
		n, _, err := syscall.Recvfrom(int(fd), first[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		hasEnded = n == 0 && err == nil || err != nil && err != syscall.EAGAIN && err != syscall.EINTR
	}
	return func() bool {
		hasEnded = false
		_ = raw.Control(look) // and not Read: it waits while another goroutine reads
		return hasEnded
	}
}
