//go:build linux && (amd64 || arm64 || riscv64 || loong64)

package conn

import (
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/scripted"
)

// Without Arm, and after the one notification of an Arm, there is none.
func TestOnlyAnArmedBellRings(t *testing.T) {
	r := newUpFleet(t, false, 1)
	unread := func() bool {
		r.lock.Lock()
		defer r.lock.Unlock()
		return r.poller.poll(0) != 0
	}
	woken := r.waiter()
	l := r.send("x", "y")
	r.wires[0].Expect(string(l.Buf))
	r.wires[0].Send(echoes("x"))
	testkit.Await(t, "for the reply", unread)
	mustSleep(t, woken)
	r.do(func() { r.Arm(false) })
	require.True(t, testkit.Get(t, woken)) // what has come before counts

	woken = r.waiter()
	mustSleep(t, woken) // once, though nothing was read
	r.do(func() { r.Arm(false) })
	require.True(t, testkit.Get(t, woken))

	r.do(func() { r.Arm(false) })
	r.until("for the first reply", func() bool { return l.nodes[0].replies == 1 })
	woken = r.waiter() // the owner that armed it has read it, too
	mustSleep(t, woken)
	r.wires[0].Send(echoes("y"))
	require.True(t, testkit.Get(t, woken)) // and the poller is still armed
	r.awaitDone(l)
}

// rawDial is a connection to a server that has not greeted it.
func rawDial(t *testing.T) (*scripted.Server, net.Conn) {
	p := scripted.New(t, func(p *scripted.Server) { p.ServeRaw = true })
	nc, err := net.Dial("tcp", p.Addr)
	require.NoError(t, err)
	return p, nc
}

// The descriptor that we keep is a copy, with the options of the original.
func TestDetach(t *testing.T) {
	p, nc := rawDial(t)
	fd, err := detach(nc)
	require.NoError(t, err)
	defer syscall.Close(fd)
	_, err = nc.Write([]byte("x"))
	assert.ErrorIs(t, err, net.ErrClosed)
	noDelay, err := syscall.GetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY)
	require.NoError(t, err)
	assert.Equal(t, 1, noDelay)
	flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0)
	require.Zero(t, errno)
	assert.NotZero(t, flags&syscall.FD_CLOEXEC)
	flags, _, errno = syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFL, 0)
	require.Zero(t, errno)
	assert.NotZero(t, flags&syscall.O_NONBLOCK)
	_, err = syscall.Write(fd, []byte("x"))
	assert.NoError(t, err)
	p.Next(t).Expect("x")
}

func TestDetachRefuses(t *testing.T) {
	before := testkit.Descriptors()
	ours, theirs := net.Pipe()
	_, err := detach(ours)
	assert.Error(t, err)
	_, err = theirs.Read(make([]byte, 1))
	assert.Error(t, err, "closed, since it was ours")

	p, nc := rawDial(t)
	require.NoError(t, nc.Close())
	_, err = detach(nc)
	assert.ErrorIs(t, err, net.ErrClosed)
	p.Close()
	testkit.Await(t, "for the descriptors", func() bool { return testkit.Descriptors() <= before })
}

// A poller that cannot take a connection does not keep it either.
func TestAdoptFails(t *testing.T) {
	before := testkit.Descriptors()
	p, nc := rawDial(t)
	made, _, err := newRawPoller(5)
	require.NoError(t, err)
	broken := made.(*epoll)
	all := broken.all
	broken.all = -1
	_, err = broken.adopt(nc, 0)
	assert.ErrorIs(t, err, syscall.EBADF)
	_, err = p.Next(t).Rest()
	assert.Error(t, err, "a reset")
	broken.all = all
	broken.close()
	p.Close()
	testkit.Await(t, "for the descriptors", func() bool { return testkit.Descriptors() <= before })
}

// A sock closes its descriptor once: the number may be another file's by then.
func TestASockClosesOnce(t *testing.T) {
	p, nc := rawDial(t)
	made, _, err := newRawPoller(5)
	require.NoError(t, err)
	defer made.close()
	s, err := made.adopt(nc, 0)
	require.NoError(t, err)
	p.Next(t) // so that no other file is opened below
	fd := int(s.(*raw).fd)
	s.close(false)
	for other := -1; other != fd; { // until another file has the number
		f, err := os.Open(os.DevNull)
		require.NoError(t, err)
		defer f.Close()
		other = int(f.Fd())
	}
	s.close(true)
	_, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0)
	assert.Zero(t, errno, "still open")
}

// Many connections come and go and leave no descriptor behind.
func TestNothingLeaks(t *testing.T) {
	cycles := 200
	if testing.Short() {
		cycles = 20
	}
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		unrelated := testkit.Descriptors()
		routines := runtime.NumGoroutine()
		r := newUpFleet(t, portable, 2)
		r.works()
		level := testkit.Descriptors()
		for i := range cycles {
			switch i % 4 {
			case 0:
				r.wires[0].Cut()
			case 1:
				_ = r.wires[0].Close()
			case 2:
				r.wires[0].Half()
			case 3:
				r.wires[0].Send("x")
			}
			r.lose(0)
			if i%10 == 0 {
				r.peers[0].Forget(1)
			}
			r.up()
		}
		r.peers[0].Forget(1)
		testkit.Await(t, "for the descriptors of what has gone", func() bool { return testkit.Descriptors() <= level })
		r.works()
		r.close()
		r.sent = nil
		for _, p := range r.peers {
			p.Close()
		}
		testkit.Await(t, "for all descriptors", func() bool { return testkit.Descriptors() <= unrelated })
		testkit.Await(t, "for all goroutines", func() bool { return runtime.NumGoroutine() <= routines })
	})
}

// TestEarlyArrivalsEndNoLateWait: after Arm(late) the answer of an early node ends no wait, that of another does, with
// both read then; and Wake does.
func TestEarlyArrivalsEndNoLateWait(t *testing.T) {
	r := newUpFleet(t, false, 3)
	l := newLedger(t, []string{"x"})
	r.post(l)
	for i := range 3 {
		r.wires[i].Expect(string(l.Buf))
	}
	r.do(func() { r.Arm(true) })
	woken := make(chan bool)
	go func() { woken <- r.Wait(); woken <- r.Wait() }()
	p := r.poller.(*epoll)
	r.wires[0].Send(echoes("x"))
	testkit.Await(t, "for the early answer to arrive", func() bool {
		ready := false
		r.do(func() { ready = p.poll(0).Has(0) })
		return ready
	})
	select {
	case <-woken:
		require.Fail(t, "woken by an early node")
	default:
	}
	r.wires[2].Send(echoes("x"))
	testkit.Within(t, testkit.Patience, "Wait", func() { require.True(t, <-woken) })
	r.do(func() { r.Sweep(0); r.Arm(true) })
	require.Equal(t, 1, l.nodes[0].replies)
	require.Equal(t, 1, l.nodes[2].replies)
	r.Wake()
	testkit.Within(t, testkit.Patience, "Wait", func() { require.True(t, <-woken) })
}
