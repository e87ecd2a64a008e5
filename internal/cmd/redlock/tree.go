package main

import (
	"syscall"
	"time"
)

// treeChange is what has happened to a tree: the program, and all that it has started.
type treeChange struct {
	kind   treeKind
	status int            // of programEnded, as of a shell
	signal syscall.Signal // that has ended it, or 0
}

type treeKind int

const (
	programStopped treeKind = iota
	programContinued
	programEnded
	treeGone // all of it has ended
)

// arrival is a signal that redlock has got.
type arrival struct {
	signal    syscall.Signal
	isOfGroup bool // the whole process group has got it
	at        time.Time
}
