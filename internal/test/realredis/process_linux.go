package realredis

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// freeze returns only when the kernel reports the process as stopped: for a moment after the signal
// it may still be answering.
func freeze(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(p.Pid) + "/stat")
		if err != nil {
			return err
		}
		// The state follows the name in parentheses.
		if at := bytes.LastIndexByte(stat, ')'); at >= 0 && at+2 < len(stat) && stat[at+2] == 'T' {
			return nil
		}
		time.Sleep(100 * time.Microsecond)
	}
}

func unfreeze(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
