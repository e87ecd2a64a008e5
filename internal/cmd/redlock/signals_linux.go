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

// morePassed is SIGPWR and the signals in real time: container runtimes and systemd stop some programs by them.
func morePassed() (more []os.Signal) {
	more = append(more, syscall.SIGPWR)
	for number := syscall.Signal(34); number <= 64; number++ {
		more = append(more, number)
	}
	return more
}

// startMask is the mask of the signals that were ignored when this process began and that Go has left alone.
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

// wasIgnored reports whether a signal was ignored when this process began. It is known for those that stop a process.
func wasIgnored(s syscall.Signal) bool { return startMask()>>(s-1)&1 != 0 }

// dieOf ends this process by a signal, without a core of it, as if it were the program. It returns where that cannot be: PID 1
// has no default actions.
func dieOf(s syscall.Signal) {
	const setDumpable = 4
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setDumpable, 0, 0)
	var byDefault [64]byte // struct sigaction
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
	_ = syscall.Kill(os.Getpid(), s)
}

// nameKeeper has ps, pkill and killall show the keeper by a name of its own.
func nameKeeper() { _ = os.WriteFile("/proc/self/comm", []byte(keeperName), 0) }
