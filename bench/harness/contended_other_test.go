//go:build !linux

package harness

var contenders Program
