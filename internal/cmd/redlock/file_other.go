//go:build !unix

package main

import "io/fs"

// checkSecret refuses no file: there are no Unix modes here.
func checkSecret(fs.FileInfo) error { return nil }

// withMode makes files: there are no Unix modes here.
func withMode(_ fs.FileMode, makes func()) { makes() }
