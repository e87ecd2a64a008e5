//go:build unix && !linux

package main

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// adopt has no counterpart here.
func adopt() {}

// start starts the program, and reports the changes of the tree.
func (t *tree) start(path string, argv, environ []string) error {
	if err := t.fork(path, argv, environ, nil); err != nil {
		return err
	}
	go t.reap()
	return nil
}

// reap waits for the program, and then looks for the processes it has left, four times a second.
func (t *tree) reap() {
	program := t.program
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(program, &status, syscall.WUNTRACED|syscall.WCONTINUED, nil)
		if err == syscall.EINTR {
			continue
		}
		isOver := err != nil || status.Exited() || status.Signaled()
		if isOver {
			t.mu.Lock()
			t.program = 0
			t.mu.Unlock()
		}
		t.note(status)
		if isOver {
			break
		}
	}
	for len(t.members()) > 0 {
		time.Sleep(250 * time.Millisecond)
	}
	t.changes <- treeChange{kind: treeGone}
}

// psLine is a line of ps.
type psLine struct{ pid, parent, group int }

func processes() (all []psLine) {
	list, _ := exec.Command("ps", "-A", "-o", "pid=,ppid=,pgid=,stat=").Output()
	for line := range strings.Lines(string(list)) {
		words := strings.Fields(line)
		if len(words) < 4 || words[3][0] == 'Z' {
			continue
		}
		var p psLine
		for i, number := range []*int{&p.pid, &p.parent, &p.group} {
			*number, _ = strconv.Atoi(words[i])
		}
		all = append(all, p)
	}
	return all
}

// children returns the children of a process.
func children(pid int) (all []int) {
	for _, p := range processes() {
		if p.parent == pid {
			all = append(all, p.pid)
		}
	}
	return all
}

// descendants returns the processes below one, parents first, and orphans in the group of this process. The other
// programs of a pipeline are no orphans: the shell is their parent. ps itself is gone by the time its output is read.
func descendants(pid int) (below []int) {
	all := processes()
	known := map[int]bool{pid: true, os.Getpid(): true, os.Getppid(): true}
	parents := map[int]bool{pid: true}
	for again := true; again; {
		again = false
		for _, p := range all {
			isOrphan := p.parent == 1 && p.group == syscall.Getpgrp()
			if !known[p.pid] && (parents[p.parent] || isOrphan) {
				known[p.pid], parents[p.pid], again = true, true, true
				below = append(below, p.pid)
			}
		}
	}
	return below
}

// listsProcesses reports whether there is a list of processes: there is ps.
func listsProcesses() bool { return true }

// isRunning reports whether a process exists.
func isRunning(pid int) bool { return syscall.Kill(pid, 0) != syscall.ESRCH }

// agrees cannot look.
func (t *tree) agrees(caller, bool) bool { return true }
