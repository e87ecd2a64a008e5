package clock

import (
	"syscall"
	"time"
	"unsafe"
)

const clockBoottime = 7

// readBoottime reads CLOCK_BOOTTIME, which also runs while the machine is suspended.
func readBoottime() (time.Duration, bool) {
	var t syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&t)), 0)
	return time.Duration(t.Nano()), errno == 0
}
