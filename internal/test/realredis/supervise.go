package realredis

import (
	"os/exec"
	"runtime"
)

// supervise starts a process and closes exited when it has ended and its exit
// status is known.
//
// The thread that starts the process stays with it: the death signal asked for
// by dieWithParent comes when that thread ends, not when the program does, and
// the runtime is free to end a thread that nothing is locked to.
func supervise(cmd *exec.Cmd, exited chan<- struct{}) error {
	dieWithParent(cmd)
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
			close(exited)
		}
	}()
	return <-started
}
