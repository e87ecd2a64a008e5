//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// maxFiles returns how many files and connections the process may have open.
func maxFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || uint64(limit.Cur) > 1<<30 {
		return 1 << 30
	}
	return int(limit.Cur)
}

// reap takes the ends of orphans if the process is the first of its container. It is their parent then, and they would
// stay as zombies. A server starts no programs of its own, so each end is an orphan's.
func reap() {
	if os.Getpid() != 1 {
		return
	}
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGCHLD)
	go func() {
		for range ends {
			for pid, err := 1, error(nil); pid > 0 || err == syscall.EINTR; {
				pid, err = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			}
		}
	}()
}
