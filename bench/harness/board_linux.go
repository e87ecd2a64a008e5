package harness

import (
	"errors"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// sharedMemory is a file system without a disk.
const sharedMemory = "/dev/shm"

// newBoard makes a board, and returns the file that others map.
func newBoard(keys, processes, workers int) (*board, string, error) {
	dir := sharedMemory
	if _, err := os.Stat(dir); err != nil {
		dir = ""
	}
	f, err := os.CreateTemp(dir, "redlock-bench-")
	if err != nil {
		return nil, "", err
	}
	name := f.Name()
	err = errors.Join(f.Truncate(int64(boardSize(keys, processes, workers))), f.Close())
	if err != nil {
		return nil, name, err
	}
	b, err := openBoard(name, keys, processes, workers)
	return b, name, err
}

// openBoard maps a board that is there.
func openBoard(name string, keys, processes, workers int) (*board, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	memory, err := syscall.Mmap(int(f.Fd()), 0, boardSize(keys, processes, workers), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return layBoard(memory, keys, processes, workers), nil
}

// Close gives the memory back.
func (b *board) Close() error { return syscall.Munmap(b.memory) }

const clockMonotonic = 1

// started is when this process has read CLOCK_MONOTONIC, which all processes
// share. The runtime's own monotonic time is the same clock from another zero,
// so that a stamp needs no system call.
var started, startedAt = func() (time.Time, int64) {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)), 0)
	at := time.Now()
	if errno != 0 {
		panic(errno)
	}
	return at, ts.Nano()
}()

// now is the time on the clock that all processes share, in nanoseconds.
func now() int64 { return startedAt + int64(time.Since(started)) }

// The signals that stop a process, and continue it.
var sigStop, sigCont os.Signal = syscall.SIGSTOP, syscall.SIGCONT
