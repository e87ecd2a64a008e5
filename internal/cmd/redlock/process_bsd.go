//go:build unix && !linux

package main

import "syscall"

// endWithParent does nothing: other systems than Linux do not end a child with its parent.
func endWithParent(*syscall.SysProcAttr) {}
