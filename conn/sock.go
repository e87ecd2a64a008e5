package conn

import (
	"net"
	"time"

	"github.com/redlock-go/redlock/quorum"
)

// This file is the seam to the operating system. The code above it uses non-blocking sockets, and one poller for all
// of them. Below it are raw descriptors on epoll (Linux, raw.go and epoll.go), or a net.Conn with two goroutines (all
// systems, and TLS; pump.go).

// sock is an established connection. It never blocks its caller.
type sock interface {
	// send hands b, or the first part of it, to the kernel. Fewer bytes than len(b) without an error mean a full
	// kernel buffer: the poller reports the sock when there is room again.
	send(b []byte) (int, error)
	// recv reads what has arrived: 0 bytes and no error if nothing has. The end of the stream is io.EOF. The poller
	// reports the sock again while recv has left something.
	recv(b []byte) (int, error)
	// close frees the sock. With reset set the kernel drops the unsent bytes and resets the connection, so nothing is
	// delivered late. It is called once: the number of a descriptor may belong to another file then.
	close(reset bool)
}

// newFastPoller makes the poller of the fast path, and reports whether its poll can block: then a caller may wait there
// for its own reply without a switch of goroutines. The benchmark without system calls has another one.
var newFastPoller = newRawPoller

// poller waits for any of a fleet's socks. It knows them by node index. Its exported methods are the fleet's.
type poller interface {
	// adopt takes over an established connection with nothing unread. It owns nc from then on, also when it fails.
	adopt(nc net.Conn, node int) (sock, error)
	// poll returns the nodes whose socks have bytes to read, have room again, or have failed. Where there is none it
	// blocks up to d, if it can.
	poll(d time.Duration) quorum.Set
	// Wake ends a blocked poll, or else the next one, and a Wait after Arm. It may be called at any time, without the
	// fleet's lock.
	Wake()
	// Arm makes the next arrival end a Wait, once; with late set, one of a node that is not early.
	Arm(late bool)
	// Wait blocks until something arrived after Arm, or close. It reports whether the poller is still open. One
	// goroutine waits, without the fleet's lock.
	Wait() bool
	// close ends a Wait and frees the poller. The socks are closed before it.
	close()
}
