package main

import (
	"syscall"
	"time"
)

// treeChange is a change of a tree: the program, and every process started below it.
type treeChange struct {
	kind   treeKind
	status int            // programEnded: its exit status, as in a shell
	signal syscall.Signal // the signal that ended it, or 0
}

type treeKind int

const (
	programStopped treeKind = iota
	programContinued
	programEnded
	treeGone // no process of it is left
)

// arrival is a signal received by redlock.
type arrival struct {
	signal    syscall.Signal
	isOfGroup bool // sent to the whole process group
	at        time.Time
}
