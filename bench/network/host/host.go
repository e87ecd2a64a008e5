// Package host has the machines of the lab: each is a network namespace with one device, whose other end is a file
// of this process.
//
// A namespace here has no name. It is that of a thread of this process and of the programs that the thread has
// started, and the kernel removes it with the last of them. Each program is killed when its thread ends. So nothing
// of a lab outlives its process, also where that is killed.
package host

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// Host is a machine.
type Host struct {
	Number int      // the last byte of its address
	Device *os.File // what is read here the host has sent, and what is written here it receives
	do     chan func()
	socket int // in the namespace
}

// Address is the address of the host with a number.
func Address(number int) string { return fmt.Sprintf("10.77.0.%d", number) }

// New makes a host. It needs root, or CAP_SYS_ADMIN and CAP_NET_ADMIN.
func New(number int) (*Host, error) {
	h := &Host{Number: number, do: make(chan func())}
	built := make(chan error)
	go h.live(built)
	if err := <-built; err != nil {
		return nil, fmt.Errorf("host %d: %w", number, err)
	}
	return h, nil
}

// live is the thread of the host. It is never unlocked, so that it ends with its goroutine.
func (h *Host) live(built chan<- error) {
	runtime.LockOSThread()
	err := h.build()
	built <- err
	if err != nil {
		return
	}
	for f := range h.do {
		f()
	}
}

// Start starts a program on the host.
func (h *Host) Start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	h.do <- func() { started <- cmd.Start() }
	return <-started
}

// Close kills the programs of the host and removes it.
func (h *Host) Close() {
	close(h.do)
	_ = syscall.Close(h.socket)
	_ = h.Device.Close()
}

// Missing says what this machine lacks to have hosts, or nil.
func Missing() error {
	h, err := New(1)
	if err == nil {
		h.Close()
	}
	return err
}
