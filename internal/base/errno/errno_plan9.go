package errno

import "syscall"

// Plan 9 has texts in place of numbers.
var (
	ConnRefused error = syscall.NewError("connection refused")
	ConnReset   error = syscall.NewError("connection reset")
	AddrInUse   error = syscall.NewError("address in use")
	BadAddr     error = syscall.NewError("cannot assign address")
	BrokenPipe  error = syscall.NewError("i/o on hungup channel")
)
