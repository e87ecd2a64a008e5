//go:build linux && (amd64 || arm64 || riscv64 || loong64)

package conn

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/scripted"
)

func (r *testFleet) waiter() <-chan bool {
	woken := make(chan bool, 1)
	go func() { woken <- r.Wait() }()
	return woken
}

func mustSleep(t *testing.T, woken <-chan bool) {
	t.Helper()
	select {
	case <-woken:
		require.FailNow(t, "woken for nothing")
	case <-time.After(10 * time.Millisecond): // a wake-up would have come by then
	}
}

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

// The descriptor that we keep is a copy. No child process has it.
func TestDetach(t *testing.T) {
	_, nc := rawDial(t)
	fd, err := detach(nc)
	require.NoError(t, err)
	defer syscall.Close(fd)
	_, err = nc.Write([]byte("x"))
	assert.ErrorIs(t, err, net.ErrClosed)
	flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0)
	require.Zero(t, errno)
	assert.NotZero(t, flags&syscall.FD_CLOEXEC)
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
