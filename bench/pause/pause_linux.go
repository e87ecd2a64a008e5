// Package pause sleeps more exactly than time.Sleep.
package pause

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

const clockMonotonic = 1

// Timer is a timer of the kernel, which makes a descriptor readable: the poller of the runtime,
// which time.Sleep uses, rounds up to whole milliseconds. The goroutine is parked meanwhile,
// without a thread. One goroutine uses a Timer.
type Timer struct {
	f  *os.File
	fd uintptr
}

// New makes a timer.
func New() (*Timer, error) {
	fd, _, errno := syscall.RawSyscall(syscall.SYS_TIMERFD_CREATE, clockMonotonic, syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return nil, errno
	}
	return &Timer{os.NewFile(fd, "timer"), fd}, nil
}

// Sleep sleeps for d.
func (t *Timer) Sleep(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	spec := [2]syscall.Timespec{1: syscall.NsecToTimespec(int64(d))}
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_TIMERFD_SETTIME, t.fd, 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0); errno != 0 {
		return errno
	}
	var ticks [8]byte
	_, err := t.f.Read(ticks[:])
	return err
}

// Close gives the timer back.
func (t *Timer) Close() error { return t.f.Close() }
