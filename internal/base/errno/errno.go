//go:build !windows && !plan9

package errno

import "syscall"

const (
	ConnRefused = syscall.ECONNREFUSED
	ConnReset   = syscall.ECONNRESET
	AddrInUse   = syscall.EADDRINUSE
	BadAddr     = syscall.EADDRNOTAVAIL
	BrokenPipe  = syscall.EPIPE
)
