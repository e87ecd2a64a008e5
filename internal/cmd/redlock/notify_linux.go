package main

import (
	"strconv"
	"syscall"
	"unsafe"
)

// reloading is the state of a reload, with the time required by Type=notify-reload of systemd.
func reloading() string {
	const monotonic = 1 // CLOCK_MONOTONIC
	var now syscall.Timespec
	_, _, _ = syscall.Syscall(syscall.SYS_CLOCK_GETTIME, monotonic, uintptr(unsafe.Pointer(&now)), 0)
	return "RELOADING=1\nMONOTONIC_USEC=" + strconv.FormatInt(now.Nano()/1000, 10)
}
