//go:build unix && !linux

package realredis

import (
	"os"
	"os/exec"
	"syscall"
)

func dieWithParent(*exec.Cmd) {}

func freeze(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

func unfreeze(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
