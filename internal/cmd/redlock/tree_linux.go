package main

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// adopt makes this process the parent of those below it that lose theirs.
func adopt() {
	const setChildSubreaper = 36
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0)
}

// start starts the program, and reports what becomes of the tree. If this process dies the kernel sends the program
// SIGTERM, as from timeout(1). It does so at the end of the thread that has started it, so this goroutine keeps
// its thread.
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

// reap waits for all children: the program, and what has lost its parent. When there is none the tree is gone.
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

// children returns the children of a process, zombies too.
func children(pid int) (all []int) {
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

// descendants returns the processes below one, parents first.
func descendants(pid int) []int {
	all := children(pid)
	for i := 0; i < len(all); i++ {
		all = append(all, children(all[i])...)
	}
	return all
}

// stateOf returns the state of a process, a letter, or 0 where there is none.
func stateOf(pid int) byte {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	at := bytes.LastIndexByte(stat, ')')
	if err != nil || at+2 >= len(stat) {
		return 0
	}
	return stat[at+2]
}

// isRunning reports whether a process exists and is no zombie.
func isRunning(pid int) bool { s := stateOf(pid); return s != 0 && s != 'Z' && s != 'X' }

// agrees reports whether the program has stopped, or goes on, as an event has said, and the job has not by itself: a shell
// that has both go on is not answered by an old event. The job comes first: after a ^Z it is stopped like the program, and
// a shell that has both go on between the two looks does not make them differ.
func (t *tree) agrees(job caller, isStopped bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	differs := (stateOf(int(job)) == 'T') != isStopped
	return differs && (stateOf(t.program) == 'T') == isStopped
}
