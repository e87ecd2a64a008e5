//go:build unix

package harness

import (
	"syscall"
	"time"
)

// CPUTime is the processor time that this process has used so far, in user
// and in kernel mode, over all threads.
func CPUTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
