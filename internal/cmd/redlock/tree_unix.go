//go:build unix

package main

import (
	"errors"
	"os"
	"slices"
	"sync"
	"syscall"
)

// tree is the program and every process started below it.
type tree struct {
	changes chan treeChange
	mu      sync.Mutex // held to signal a process, and to reap one: no PID passes to another process meanwhile
	program int        // 0 after it was reaped
	foreign []int      // children of this process outside the tree, with all below them
	spared  int        // a process outside the tree whose children belong to it, or 0
}

func newTree() *tree { return &tree{changes: make(chan treeChange, 16)} }

// fork starts the program with this process's initial files and signal dispositions.
func (t *tree) fork(path string, argv, environ []string, attr *syscall.SysProcAttr) error {
	writeInTurn()
	defer writeAtAnyTime()
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{Env: environ, Files: []uintptr{0, 1, 2}, Sys: attr})
	if err == syscall.ENOEXEC { // a script without #!, as execvp has it
		shell := append([]string{"sh", path}, argv[1:]...)
		pid, err = syscall.ForkExec("/bin/sh", shell, &syscall.ProcAttr{Env: environ, Files: []uintptr{0, 1, 2}, Sys: attr})
	}
	t.program = pid
	return err
}

// note sends the program's status from wait4. If the program was reaped, t.mu was held until t.program was 0.
func (t *tree) note(status syscall.WaitStatus) {
	c := treeChange{kind: programEnded, status: status.ExitStatus()}
	switch {
	case status.Stopped():
		c.kind = programStopped
	case status.Continued():
		c.kind = programContinued
	case status.Signaled():
		c.signal = status.Signal()
		c.status = 128 + int(c.signal)
	}
	t.changes <- c
}

// members returns the running processes of the tree, parents first.
func (t *tree) members() []int {
	if !listsProcesses() {
		return slices.DeleteFunc([]int{t.program}, func(pid int) bool { return pid == 0 || pid == t.spared })
	}
	others := map[int]bool{t.spared: true}
	for _, pid := range t.foreign {
		others[pid] = true
		for _, below := range descendants(pid) {
			others[below] = true
		}
	}
	return slices.DeleteFunc(descendants(os.Getpid()), func(pid int) bool { return others[pid] || !isRunning(pid) })
}

// end sends a signal to all processes of the tree, and makes stopped ones go on. It returns the processes that this
// user may not signal.
func (t *tree) end(s syscall.Signal) []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return signalAll(t.members(), s)
}

// kill ends the program, if it runs.
func (t *tree) kill() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.program != 0 {
		_ = syscall.Kill(t.program, syscall.SIGKILL)
	}
}

// pass passes a signal on to the program. A signal that ends jobs also goes to the program's descendants in its group.
// hasHad says that the whole group of redlock has already received it.
func (t *tree) pass(s syscall.Signal, hasHad bool) []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.program == 0 {
		return nil
	}
	group, err := syscall.Getpgid(t.program)
	if err != nil || hasHad && group == syscall.Getpgrp() {
		return nil
	}
	if !endsJobs(s) {
		return signalled(t.program, s)
	}
	targets := []int{t.program}
	for _, pid := range descendants(t.program) {
		if of, err := syscall.Getpgid(pid); err == nil && of == group {
			targets = append(targets, pid)
		}
	}
	return signalAll(targets, s)
}

// signalAll signals processes and makes stopped ones go on, as timeout(1) does: a stopped process does not end.
func signalAll(pids []int, s syscall.Signal) (denied []int) {
	for _, pid := range pids {
		denied = append(denied, signalled(pid, s)...)
		if s != syscall.SIGKILL {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
	return denied
}

// signalled signals a process. It returns the process if this user may not do so.
func signalled(pid int, s syscall.Signal) (denied []int) {
	if err := syscall.Kill(pid, s); errors.Is(err, syscall.EPERM) && isRunning(pid) {
		return []int{pid}
	}
	return nil
}

// suspend stops a process as a swapping machine does, and resume lets it go on.
func suspend(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }
func resume(p *os.Process) error  { return p.Signal(syscall.SIGCONT) }
