// Command bench measures redlock beside the floor, the most that the same masters allow one client
// thread. By default it starts five embedded masters in another process; -redis starts real ones,
// -nodes names running ones.
//
//	go run ./bench -redis -c 1,64 -rounds 5 -o out
//	go run ./bench -redis -suite all -o out
//
// README.md has the rest. Package harness measures, package result has the results, and package
// render shows them. The command in peers, a separate module, has other libraries beside ours.
package main

import (
	"github.com/redlock-go/redlock/bench/floor"
	"github.com/redlock-go/redlock/bench/harness"
	"github.com/redlock-go/redlock/bench/ours"
)

func main() {
	ours.ServeIfFront()
	program := harness.Program{
		Drivers: []harness.Driver{
			ours.Driver{}, ours.Driver{Portable: true}, ours.Driver{Scripted: true}, ours.Driver{Async: true}, ours.Driver{NoHandOver: true}, ours.Driver{Fenced: true}, ours.Driver{Joint: true}, ours.Driver{Groups: true}, ours.Driver{Semaphore: 8}, ours.Submitter{}, ours.Doer{}, ours.Served{}, floor.Driver{}, floor.Driver{Goroutines: true}, floor.Driver{Obliged: true},
		},
		Chosen: []string{"redlock", "floor", "floor-goroutines"},
		Source: "./bench",
		Notes: []string{
			"pair: one acquire and one release of one lock; a pair counts when its last reply has arrived inside the window",
			"floor-goroutines: the floor with a goroutine that parks for each lock, the limit of a blocking call",
			"floor-obliged: the same with a token, commands, votes, the clock and the context of each lock, the limit of a blocking lock client",
			"what a client costs is its CPU for a pair, and what it adds is latency above the floor; the servers decide how many pairs there are a second, unless they and the clients are together: then a client that needs less leaves more to them",
		},
		Suite: harness.Suite{
			Drivers:  []string{"redlock", "redlock-portable", "floor", "floor-goroutines"},
			Sections: append(harness.Sections("1,64,512", "1,64"), harness.OwnSections()...),
		},
	}
	program.Execute()
}
