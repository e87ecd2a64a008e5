//go:build unix && !linux

package main

import (
	"os"
	"os/signal"
	"syscall"
)

func morePassed() []os.Signal { return nil }

// wasIgnored has nothing to look at here.
func wasIgnored(syscall.Signal) bool { return false }

// dieOf ends this process by one of the signals for which Go's runtime keeps the default action. After others it
// returns.
func dieOf(s syscall.Signal) {
	if s == syscall.SIGHUP || s == syscall.SIGINT || s == syscall.SIGTERM || s == syscall.SIGKILL {
		signal.Reset(s)
		_ = syscall.Kill(os.Getpid(), s)
	}
}

// nameKeeper has nothing to do here: ps shows the first argument.
func nameKeeper() {}
