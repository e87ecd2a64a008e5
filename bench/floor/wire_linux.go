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
// are raw: on a locked thread that has nothing else to do, to notify the scheduler of them
// only costs.
type wire struct {
	addrs  []string
	fds    []int
	got    []int64 // bytes received, by node
	due    int64   // bytes that a node has to have sent once it has answered all
	cycle  []byte  // the replies, which repeat without end
	quorum int
	polls  []pollFD
	buf    []byte
	check  func(node int, at int64, got []byte) error // what a node has sent, after so many bytes
}

// dial connects to all nodes, has each answer to setup with ready, and expects
// cycle over and over from then on. A node that is away is left out while
// there is a quorum of others.
func dial(ctx context.Context, addrs []string, setup, ready, cycle []byte) (*wire, error) {
	w := &wire{
		addrs:  addrs,
		got:    make([]int64, len(addrs)),
		cycle:  cycle,
		quorum: len(addrs)/2 + 1,
		polls:  make([]pollFD, len(addrs)),
		buf:    make([]byte, 64<<10),
	}
	w.check = w.compare
	var errs []error
	for _, addr := range addrs {
		fd, err := dialNode(ctx, addr, setup, ready)
		if err != nil {
			fd = -1
			errs = append(errs, err)
		}
		w.fds = append(w.fds, fd)
	}
	if w.alive() < w.quorum {
		return nil, errors.Join(append(errs, w.Close())...)
	}
	return w, nil
}

// dialNode connects to one node and returns a duplicate of the descriptor that
// net has made: net's own is registered with the runtime's poller, which every
// reply would wake for nothing. TCP_NODELAY is net's default, and stays.
func dialNode(ctx context.Context, addr string, setup, ready []byte) (fd int, err error) {
	dialer := net.Dialer{Timeout: greeting}
	c, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(greeting))
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

// alive is how many nodes are left.
func (w *wire) alive() (n int) {
	for _, fd := range w.fds {
		if fd >= 0 {
			n++
		}
	}
	return n
}

// lose continues without node i, or returns err if no quorum would be left.
func (w *wire) lose(i int, err error) error {
	_ = syscall.Close(w.fds[i])
	w.fds[i] = -1
	if w.alive() < w.quorum {
		return fmt.Errorf("node %s: %w", w.addrs[i], err)
	}
	return nil
}

// Close closes all connections.
func (w *wire) Close() error {
	var all error
	for _, fd := range w.fds {
		if fd >= 0 {
			all = errors.Join(all, syscall.Close(fd))
		}
	}
	w.fds = nil
	return all
}

// step writes a request to all nodes, and returns when a quorum has answered it
// with so many bytes.
func (w *wire) step(request []byte, reply int) error {
	w.due += int64(reply)
	if err := w.send(request); err != nil {
		return err
	}
	return w.await(w.due)
}

// send writes b to every node.
func (w *wire) send(b []byte) error {
	for i := range w.fds {
		for rest := b; w.fds[i] >= 0 && len(rest) > 0; {
			n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(w.fds[i]), uintptr(unsafe.Pointer(&rest[0])), uintptr(len(rest)))
			var err error
			switch {
			case errno == 0:
				rest = rest[n:]
			case errno == syscall.EINTR:
			case errno != syscall.EAGAIN:
				err = w.lose(i, errno)
			case w.due-w.got[i] > tooFar*int64(len(w.cycle)) && w.alive() > w.quorum:
				err = w.lose(i, errNoQuorum) // it is stopped, and the others need not wait
			default:
				err = w.drain(i)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// tooFar is the number of cycles of replies that a node may owe before it is given up, once it
// takes no more requests.
const tooFar = 16

// drain waits until node i takes more, and reads what it sends meanwhile: a
// server whose replies are not read stops reading requests.
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

// receive reads what node i has sent, and has it checked.
func (w *wire) receive(i int) error {
	n, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(w.fds[i]), uintptr(unsafe.Pointer(&w.buf[0])), uintptr(len(w.buf)))
	switch {
	case errno == syscall.EAGAIN || errno == syscall.EINTR:
		return nil
	case errno != 0:
		return w.lose(i, errno)
	case n == 0:
		return w.lose(i, io.ErrUnexpectedEOF)
	}
	at := w.got[i]
	w.got[i] += int64(n)
	return w.check(i, at, w.buf[:n])
}

// compare compares what node i has sent with what it should send.
func (w *wire) compare(i int, sent int64, got []byte) error {
	for at := int(sent % int64(len(w.cycle))); len(got) > 0; at = 0 {
		want := w.cycle[at:min(len(w.cycle), at+len(got))]
		if !bytes.Equal(got[:len(want)], want) {
			return unexpected(w.addrs[i], got, want)
		}
		got = got[len(want):]
	}
	return nil
}

// poll waits for one of fds. It returns false when a signal ended the wait (the runtime preempts
// with signals): then nothing is known of any.
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
