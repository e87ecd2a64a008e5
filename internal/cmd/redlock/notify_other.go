//go:build !linux

package main

// reloading is the state of a reload.
func reloading() string { return "RELOADING=1" }
