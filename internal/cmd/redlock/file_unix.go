//go:build unix

package main

import (
	"errors"
	"io/fs"
	"syscall"
)

// ownedByRoot reports whether a file is root's.
func ownedByRoot(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == 0
}

// checkSecret refuses a file readable by others than its owner. The group may read it if root is the owner, as in a
// Secret of Kubernetes with an fsGroup.
func checkSecret(info fs.FileInfo) error {
	if !info.Mode().IsRegular() { // a pipe of the shell: <(…)
		return nil
	}
	switch mode, isRoots := info.Mode().Perm(), ownedByRoot(info); {
	case mode&0o007 != 0:
		return errors.New("other users of this machine can read it: chmod 600 it (640 if it is root's; defaultMode: 0440 in Kubernetes)")
	case mode&0o070 != 0 && !isRoots:
		return errors.New("its group can read it: chmod 600 it, or give it to root (640)")
	case mode&0o030 != 0:
		return errors.New("its group can write it: chmod 640 it")
	}
	return nil
}

// withMode makes files with a mode. It sets the umask of the whole process, so nothing else may make files meanwhile.
func withMode(mode fs.FileMode, makes func()) {
	before := syscall.Umask(int(fs.ModePerm &^ mode))
	defer syscall.Umask(before)
	makes()
}
