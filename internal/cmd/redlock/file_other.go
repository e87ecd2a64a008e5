//go:build !unix

package main

import "io/fs"

// checkSecret refuses no file: there is no mode of Unix.
func checkSecret(fs.FileInfo) error { return nil }

// withMode makes files: there is no mode of Unix.
func withMode(_ fs.FileMode, makes func()) { makes() }
