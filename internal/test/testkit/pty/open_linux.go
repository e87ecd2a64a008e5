package pty

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// open opens the two sides of a new terminal.
func open() (user, programs *os.File, err error) {
	user, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	var locked, number int32
	for request, argument := range map[uintptr]*int32{syscall.TIOCSPTLCK: &locked, syscall.TIOCGPTN: &number} {
		if err = control(user, request, argument); err != nil {
			user.Close()
			return nil, nil, err
		}
	}
	programs, err = os.OpenFile("/dev/pts/"+strconv.Itoa(int(number)), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		user.Close()
	}
	return user, programs, err
}

// control is ioctl. The descriptor stays non-blocking: Close ends a Read.
func control(f *os.File, request uintptr, argument *int32) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var errno syscall.Errno
	err = raw.Control(func(fd uintptr) {
		_, _, errno = syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(unsafe.Pointer(argument)))
	})
	if err == nil && errno != 0 {
		err = errno
	}
	return err
}

// lead makes a program the leader of a session at its standard input.
func lead(program *exec.Cmd) {
	program.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
}

// state is the state of a process and its session, as in /proc.
func state(pid string) (state, session, name string) {
	stat, _ := os.ReadFile("/proc/" + pid + "/stat")
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return "", "", ""
	}
	words := strings.Fields(string(stat[end+1:]))
	return words[0], words[3], string(stat[bytes.IndexByte(stat, '(')+1 : end])
}
