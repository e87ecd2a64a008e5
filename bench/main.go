// Command bench measures redlock beside the floor, the most that the same
// masters allow one client thread. By default it brings five masters along, in
// a process of their own; real ones are named with -nodes.
//
//	go run ./bench -nodes 127.0.0.1:7001,127.0.0.1:7002,127.0.0.1:7003 -c 1,64 -rounds 5
//
// What is measured, and how, is in package harness.
package main

import (
	"os"

	"github.com/redlock-go/redlock/bench/floor"
	"github.com/redlock-go/redlock/bench/harness"
	"github.com/redlock-go/redlock/bench/ours"
)

func main() {
	drivers := []harness.Driver{ours.Driver{}, ours.Driver{Portable: true}, floor.Driver{}}
	os.Exit(harness.Main(os.Args[1:], os.Stdout, os.Stderr, drivers, "redlock", "floor"))
}
