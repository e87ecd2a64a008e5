//go:build unix

package main

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// forwarded is the signals that a program gets which redlock gets.
var forwarded = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGALRM, syscall.SIGCONT, syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU,
}

// start starts a program as the leader of a process group. The channel is closed when it has ended.
// The kernel ends the program with the thread that has started it, so that thread lives as long.
func start(child *exec.Cmd) (ended <-chan struct{}, err error) {
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: isTerminal(child.Stdin)}
	endWithParent(child.SysProcAttr)
	started, done := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread() // and is not unlocked: the thread ends with the goroutine
		err := child.Start()
		started <- err
		if err == nil {
			_ = child.Wait()
			close(done)
		}
	}()
	return done, <-started
}

// isTerminal reports whether a program reads from a terminal. Its group is in the foreground then, or
// it could not.
func isTerminal(in io.Reader) bool {
	file, ok := in.(*os.File)
	if !ok {
		return false
	}
	is, err := file.Stat()
	null, nullErr := os.Stat(os.DevNull)
	return err == nil && nullErr == nil && is.Mode()&os.ModeCharDevice != 0 && !os.SameFile(is, null)
}

// signalGroup sends a signal to all processes of the group of p.
func signalGroup(p *os.Process, s os.Signal) error {
	if number, ok := s.(syscall.Signal); ok {
		return syscall.Kill(-p.Pid, number)
	}
	return p.Signal(s)
}

// suspend stops a process as a machine that swaps, and resume lets it go on.
func suspend(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }
func resume(p *os.Process) error  { return p.Signal(syscall.SIGCONT) }
