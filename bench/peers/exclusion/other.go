//go:build !linux

// Command exclusion needs Linux: a clock that processes share, and signals that stop them.
package main

func main() { panic("exclusion needs Linux") }
