// Command bench measures redlock beside the floor, the most that the same
// masters allow one client thread. By default it brings five masters along, in
// a process of their own; -redis starts real ones, -nodes names some that run.
//
//	go run ./bench -redis -c 1,64 -rounds 5
//	go run ./bench -redis -growth
//	go run ./bench -redis -suite out
//
// What is measured, and how, is in package harness. The command in peers, a
// module of its own, has other libraries beside them.
package main

import (
	"os"

	"github.com/redlock-go/redlock/bench/floor"
	"github.com/redlock-go/redlock/bench/growth"
	"github.com/redlock-go/redlock/bench/harness"
	"github.com/redlock-go/redlock/bench/ours"
)

func main() {
	program := harness.Program{
		Drivers: []harness.Driver{
			ours.Driver{}, ours.Driver{Portable: true}, ours.Driver{Scripted: true}, ours.Submitter{}, floor.Driver{}, floor.Driver{Goroutines: true}, floor.Driver{Native: true},
		},
		Chosen: []string{"redlock", "floor", "floor-goroutines"},
		Growth: growth.Run,
		Suite: harness.Suite{
			Drivers:  []string{"redlock", "redlock-portable", "floor", "floor-goroutines"},
			Sections: append(harness.Sections("1,64,512", "1,64"), harness.OwnSections()...),
		},
	}
	os.Exit(program.Main(os.Args[1:], os.Stdout, os.Stderr))
}
