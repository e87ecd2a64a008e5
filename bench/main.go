// Command bench measures redlock beside the floor, the most that the same
// masters allow one client thread. By default it brings five masters along, in
// a process of their own; -redis starts real ones, -nodes names some that run.
//
//	go run ./bench -redis -c 1,64 -rounds 5 -o out
//	go run ./bench -redis -suite all -o out
//
// README.md says how. Package harness measures, package result has the results,
// and package render shows it. The command in peers, a module of its own, has
// other libraries beside ours.
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
			ours.Driver{}, ours.Driver{Portable: true}, ours.Driver{Scripted: true}, ours.Driver{Async: true}, ours.Driver{NoHandOver: true}, ours.Driver{Fenced: true}, ours.Submitter{}, floor.Driver{}, floor.Driver{Goroutines: true}, floor.Driver{Native: true},
		},
		Chosen: []string{"redlock", "floor", "floor-goroutines"},
		Growth: growth.Run,
		Notes: []string{
			"pair: one acquire and one release of one lock; a pair counts when its last reply has arrived inside the window",
			"floor is no lock client but the yardstick, one thread that does only the unavoidable, for -c locks in one batch; floor-goroutines has a goroutine park for each of them, which is what a blocking call can reach",
			"all clients share the machine with the servers, and one that needs less CPU leaves more to them",
		},
		Suite: harness.Suite{
			Drivers:  []string{"redlock", "redlock-portable", "floor", "floor-goroutines"},
			Sections: append(harness.Sections("1,64,512", "1,64"), harness.OwnSections()...),
		},
	}
	os.Exit(program.Main(os.Args[1:], os.Stdout, os.Stderr))
}
