package fleet

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
	// ended returns the end of the stream, or another failure, if that is the next thing to be received. It receives
	// nothing.
	ended() error
	// close frees the sock. With reset set the kernel drops the unsent bytes and resets the connection, so nothing is
	// delivered late.
	close(reset bool)
}

// newFastPoller makes the poller of the fast path. The benchmark without system calls has another one.
var newFastPoller = newRawPoller

// poller waits for any of a fleet's socks. It knows them by node index.
type poller interface {
	// adopt takes over an established connection with nothing unread. It owns nc from then on, also when it fails.
	adopt(nc net.Conn, node int) (sock, error)
	// poll returns the nodes whose socks have bytes to read, have room again, or have failed. Where there is none it
	// blocks up to d, if it can; see canBlock.
	poll(d time.Duration) quorum.Set
	// canBlock reports whether poll can block: then a caller may wait there for its own reply without a switch of
	// goroutines.
	canBlock() bool
	// wake ends a blocked poll, or else the next one, and a wait after arm. It may be called at any time, without the
	// fleet's lock.
	wake()
	// arm makes the next report of poll end a wait, once.
	arm()
	// armLate is arm for the reports of all nodes but the early ones.
	armLate()
	// wait blocks until something happened after arm or armLate, or close. It reports
	// whether the poller is still open. One goroutine waits.
	wait() bool
	// close ends a wait and frees the poller. The socks are closed before it.
	close()
	// drain waits until the goroutines of all socks have ended. It is called
	// after close, and without the fleet's lock.
	drain()
}
