//go:build !linux

package proxy

import "errors"

// serve fails: the system calls of the loop are Linux's.
func serve([]string) error { return errors.New("only on linux") }
