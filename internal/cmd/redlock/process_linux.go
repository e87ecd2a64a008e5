package main

import "syscall"

// endWithParent has the kernel end a child when redlock ends without having done so.
func endWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGTERM }
