package errno

import "syscall"

const (
	ConnRefused = syscall.Errno(10061) // WSAECONNREFUSED
	ConnReset   = syscall.WSAECONNRESET
	AddrInUse   = syscall.Errno(10048) // WSAEADDRINUSE
	BadAddr     = syscall.Errno(10049) // WSAEADDRNOTAVAIL
	BrokenPipe  = syscall.WSAECONNABORTED
)
