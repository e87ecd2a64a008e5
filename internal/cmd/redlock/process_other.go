//go:build !unix

package main

import (
	"errors"
	"os"
	"os/exec"
)

var forwarded = []os.Signal{os.Interrupt}

// start starts a program. The channel is closed when it has ended.
func start(child *exec.Cmd) (ended <-chan struct{}, err error) {
	done := make(chan struct{})
	if err := child.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = child.Wait()
		close(done)
	}()
	return done, nil
}

// signalGroup ends a program: this system has no other signals and no groups of processes.
func signalGroup(p *os.Process, _ os.Signal) error { return p.Kill() }

func suspend(*os.Process) error { return errors.ErrUnsupported }
func resume(*os.Process) error  { return errors.ErrUnsupported }
