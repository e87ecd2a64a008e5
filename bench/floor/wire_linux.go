package floor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
	"unsafe"
)

// pollFD is struct pollfd of poll(2).
type pollFD struct {
	fd      int32
	events  int16
	revents int16
}

// The flags of pollFD.
const (
	pollIn  = 0x1
	pollOut = 0x4
)

// wire is one connection to each node. The same bytes go to all of them, and
// all must answer with the same bytes, so how far a node has come is a single
// number: how many bytes it has sent.
//
// It owns bare descriptors that the runtime does not know of. The system calls
// are raw: on a locked thread that has nothing else to do, telling the
// scheduler about them only costs.
type wire struct {
	addrs  []string
	fds    []int
	got    []int64 // bytes received, by node
	cycle  []byte  // the replies, which repeat without end
	quorum int
	polls  []pollFD
	buf    []byte
}

// dial connects to all nodes, has each answer to setup with ready, and expects
// cycle over and over from then on.
func dial(ctx context.Context, addrs []string, setup, ready, cycle []byte) (*wire, error) {
	w := &wire{
		addrs:  addrs,
		got:    make([]int64, len(addrs)),
		cycle:  cycle,
		quorum: len(addrs)/2 + 1,
		polls:  make([]pollFD, len(addrs)),
		buf:    make([]byte, 64<<10),
	}
	for _, addr := range addrs {
		fd, err := dialNode(ctx, addr, setup, ready)
		if err != nil {
			return nil, errors.Join(err, w.Close())
		}
		w.fds = append(w.fds, fd)
	}
	return w, nil
}

// dialNode connects to one node and returns a duplicate of the descriptor that
// net has made: net's own is registered with the runtime's poller, which every
// reply would wake for nothing. TCP_NODELAY is net's default, and stays.
func dialNode(ctx context.Context, addr string, setup, ready []byte) (fd int, err error) {
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write(setup); err != nil {
		return 0, err
	}
	answer := make([]byte, len(ready))
	if n, err := io.ReadFull(c, answer); err != nil {
		return 0, fmt.Errorf("%w (%w)", unexpected(addr, answer[:n], ready), err)
	}
	if !bytes.Equal(answer, ready) {
		return 0, unexpected(addr, answer, ready)
	}
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	// The fork lock keeps the duplicate from leaking into a child that is
	// started between the two calls.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	var dupErr error
	if err := raw.Control(func(old uintptr) { fd, dupErr = syscall.Dup(int(old)) }); err != nil {
		return 0, err
	}
	if dupErr != nil {
		return 0, dupErr
	}
	syscall.CloseOnExec(fd)
	return fd, syscall.SetNonblock(fd, true)
}

// Close closes all connections.
func (w *wire) Close() error {
	var all error
	for _, fd := range w.fds {
		all = errors.Join(all, syscall.Close(fd))
	}
	w.fds = nil
	return all
}

// send writes b to every node.
func (w *wire) send(b []byte) error {
	for i := range w.fds {
		for rest := b; ; {
			n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(w.fds[i]), uintptr(unsafe.Pointer(&rest[0])), uintptr(len(rest)))
			if errno == 0 {
				if rest = rest[n:]; len(rest) == 0 {
					break
				}
				continue
			}
			if errno != syscall.EAGAIN && errno != syscall.EINTR {
				return fmt.Errorf("node %s: write: %w", w.addrs[i], errno)
			}
			if err := w.drain(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// drain waits until node i takes more, and reads what it sends meanwhile: a
// server whose replies nobody reads stops reading requests.
func (w *wire) drain(i int) error {
	one := [1]pollFD{{fd: int32(w.fds[i]), events: pollIn | pollOut}}
	ready, err := poll(one[:])
	if err != nil {
		return fmt.Errorf("node %s: %w", w.addrs[i], err)
	}
	if ready && one[0].revents&^pollOut != 0 {
		return w.receive(i)
	}
	return nil
}

// await returns when a quorum of nodes has sent target bytes. It asks the
// kernel to wait straight away, since no node can have answered yet that was
// written to a few microseconds ago, and only for the nodes that still matter.
func (w *wire) await(target int64) error {
	for {
		have := 0
		for i, n := range w.got {
			w.polls[i] = pollFD{fd: int32(w.fds[i]), events: pollIn}
			if n >= target {
				w.polls[i].fd = -1 // ignored
				have++
			}
		}
		if have >= w.quorum {
			return nil
		}
		ready, err := poll(w.polls)
		if err != nil {
			return err
		}
		if !ready {
			continue
		}
		for i := range w.polls {
			if w.polls[i].revents != 0 {
				if err := w.receive(i); err != nil {
					return err
				}
			}
		}
	}
}

// receive reads what node i has sent and compares it with what it should send.
func (w *wire) receive(i int) error {
	n, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(w.fds[i]), uintptr(unsafe.Pointer(&w.buf[0])), uintptr(len(w.buf)))
	switch {
	case errno == syscall.EAGAIN || errno == syscall.EINTR:
		return nil
	case errno != 0:
		return fmt.Errorf("node %s: read: %w", w.addrs[i], errno)
	case n == 0:
		return fmt.Errorf("node %s: %w", w.addrs[i], io.ErrUnexpectedEOF)
	}
	at := int(w.got[i] % int64(len(w.cycle)))
	w.got[i] += int64(n)
	for got := w.buf[:n]; len(got) > 0; at = 0 {
		want := w.cycle[at:min(len(w.cycle), at+len(got))]
		if !bytes.Equal(got[:len(want)], want) {
			return unexpected(w.addrs[i], got, want)
		}
		got = got[len(want):]
	}
	return nil
}

// poll waits for one of fds. It says false when a signal ended the wait (the
// runtime preempts with signals), in which case nothing is known of any.
func poll(fds []pollFD) (bool, error) {
	limit := syscall.NsecToTimespec(int64(patience)) // the kernel writes to it
	n, _, errno := syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), uintptr(len(fds)), uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	switch {
	case errno == syscall.EINTR:
		return false, nil
	case errno != 0:
		return false, fmt.Errorf("ppoll: %w", errno)
	case n == 0:
		return false, errNoQuorum
	}
	return true, nil
}
