//go:build !unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"time"
)

var forwarded = []os.Signal{os.Interrupt}

// group is a program: this system has no groups of processes, and no signals but the end.
type group struct {
	child *exec.Cmd
	ended chan struct{}
}

func start(child *exec.Cmd, _ time.Duration) (*group, error) {
	g := &group{child, make(chan struct{})}
	if err := child.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = child.Wait()
		close(g.ended)
	}()
	return g, nil
}

func (g *group) signal(os.Signal) { _ = g.child.Process.Kill() }
func (g *group) hurry()           {}
func (g *group) close()           {}
func (g *group) hasOthers() bool  { return false }

func supervise(*environment, string) error { return errors.ErrUnsupported }

func suspend(*os.Process) error { return errors.ErrUnsupported }
func resume(*os.Process) error  { return errors.ErrUnsupported }
