package main

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unsafe"
)

// morePassed returns SIGPWR and the real-time signals: container runtimes and systemd stop some programs with them.
func morePassed() (more []os.Signal) {
	more = append(more, syscall.SIGPWR)
	for number := syscall.Signal(34); number <= 64; number++ {
		more = append(more, number)
	}
	return more
}

// startMask is the mask of the signals ignored when this process began and left alone by Go.
var startMask = sync.OnceValue(func() uint64 {
	status, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer status.Close()
	for lines := bufio.NewScanner(status); lines.Scan(); {
		if mask, found := strings.CutPrefix(lines.Text(), "SigIgn:"); found {
			bits, _ := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			return bits
		}
	}
	return 0
})

// wasIgnored reports whether a signal was ignored when this process began. That is known for the signals that stop a
// process.
func wasIgnored(s syscall.Signal) bool { return startMask()>>(s-1)&1 != 0 }

// dieOf ends this process by a signal, without a core dump, as if it were the program. It returns if that is
// impossible: PID 1 has no default actions.
func dieOf(s syscall.Signal) {
	const setDumpable = 4
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setDumpable, 0, 0)
	var byDefault [64]byte // struct sigaction
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
	_ = syscall.Kill(os.Getpid(), s)
}

// nameKeeper gives the keeper a name of its own in ps, pkill and killall.
func nameKeeper() { _ = os.WriteFile("/proc/self/comm", []byte(keeperName), 0) }
