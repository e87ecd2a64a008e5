package realredis

import (
	"os/exec"
	"runtime"
)

// supervise starts a process and closes exited once it has ended with a known exit status.
//
// The starting thread stays with it: the death signal of dieWithParent comes at the end of this
// thread, not of the program, and the runtime is free to end an unlocked thread.
func supervise(cmd *exec.Cmd, start func(*exec.Cmd) error, exited chan<- struct{}) error {
	dieWithParent(cmd)
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := start(cmd)
		started <- err
		if err == nil {
			_ = cmd.Wait()
			close(exited)
		}
	}()
	return <-started
}
