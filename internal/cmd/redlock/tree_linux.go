package main

import (
	"bytes"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unsafe"
)

// adopt makes this process the parent of all orphans below it.
func adopt() {
	const setChildSubreaper = 36
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0)
}

// start starts the program, and reports the changes of the tree. If this process dies, the kernel sends the program
// SIGTERM, as from timeout(1). The kernel does so at the end of the thread that started the program, so this goroutine
// keeps its thread.
func (t *tree) start(path string, argv, environ []string) error {
	adopt()
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := t.fork(path, argv, environ, &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM})
		started <- err
		if err == nil {
			t.reap()
		}
	}()
	return <-started
}

// reap waits for all children: the program and adopted orphans. Without any left the tree is gone.
func (t *tree) reap() {
	for {
		const (
			all    = 0
			noWait = 0x01000000
		)
		var info [128]byte // siginfo_t
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, all, 0, uintptr(unsafe.Pointer(&info)),
			syscall.WEXITED|syscall.WSTOPPED|syscall.WCONTINUED|noWait, 0, 0)
		if errno == syscall.EINTR {
			continue
		}
		t.mu.Lock()
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG|syscall.WUNTRACED|syscall.WCONTINUED, nil)
		isProgram := pid > 0 && pid == t.program
		if isProgram && (status.Exited() || status.Signaled()) {
			t.program = 0
		}
		t.mu.Unlock()
		if err == syscall.ECHILD {
			t.changes <- treeChange{kind: treeGone}
			return
		}
		if isProgram {
			t.note(status)
		}
	}
}

// listsProcesses reports whether there is a list of processes: a bare chroot has no /proc.
var listsProcesses = sync.OnceValue(func() bool {
	_, err := os.Stat("/proc/self/stat")
	return err == nil
})

// hasLists reports whether the kernel lists the children of a process (CONFIG_PROC_CHILDREN).
var hasLists = sync.OnceValue(func() bool {
	_, err := os.Stat("/proc/thread-self/children")
	return err == nil
})

// children returns the children of a process, zombies too.
func children(pid int) (all []int) {
	if !hasLists() {
		return searched(pid)
	}
	tasks := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, _ := os.ReadDir(tasks)
	for _, thread := range threads {
		list, _ := os.ReadFile(tasks + "/" + thread.Name() + "/children")
		for word := range strings.FieldsSeq(string(list)) {
			if child, err := strconv.Atoi(word); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

// searched finds the children of a process by a look at all processes.
func searched(pid int) (all []int) {
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		if child, err := strconv.Atoi(entry.Name()); err == nil {
			if _, parent := stateOf(child); parent == pid {
				all = append(all, child)
			}
		}
	}
	return all
}

// descendants returns the processes below one, parents first. A process whose parent ends between the two looks is
// adopted by the root. So the root's children are looked at until no new ones appear.
func descendants(pid int) (all []int) {
	add := func(parent int) {
		for _, child := range children(parent) {
			if !slices.Contains(all, child) {
				all = append(all, child)
			}
		}
	}
	for known := -1; known < len(all); {
		known = len(all)
		add(pid)
		for i := known; i < len(all); i++ {
			add(all[i])
		}
	}
	return all
}

// stateOf returns the state of a process, a letter, and its parent, or 0 without a process.
func stateOf(pid int) (state byte, parent int) {
	stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	at := bytes.LastIndexByte(stat, ')')
	if words := bytes.Fields(stat[at+1:]); at >= 0 && len(words) > 1 {
		state = words[0][0]
		parent, _ = strconv.Atoi(string(words[1]))
	}
	return state, parent
}

// isRunning reports whether a process exists and is not a zombie.
func isRunning(pid int) bool {
	if !listsProcesses() {
		return syscall.Kill(pid, 0) != syscall.ESRCH
	}
	s, _ := stateOf(pid)
	return s != 0 && s != 'Z' && s != 'X'
}

// isStopped reports whether a process is stopped.
func isStopped(pid int) bool {
	s, _ := stateOf(pid)
	return s == 'T'
}

// agrees reports whether the program is still in the state of an event, stopped or running, and the job is not in that
// state already. If a shell has both go on, no old event must stop the job again. The job is looked at first: ^Z stops
// it together with the program, and a shell that makes both go on between the two looks does not make them differ.
func (t *tree) agrees(job caller, stopped bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return isStopped(int(job)) != stopped && isStopped(t.program) == stopped
}
