// Command peers measures redlock beside other Redlock clients for Go, and beside
// the floor, the most that the same masters allow one client thread. By default
// it starts five real servers; redis-server or valkey-server must be on PATH.
//
//	go run . -c 1,64,512 -rounds 5 -o out
//	go run . -suite all -o out
//
// README.md describes the method and its limits. Package harness of the parent module measures; the
// peers are in package drivers.
package main

import (
	"github.com/redlock-go/redlock/bench/harness"
	"github.com/redlock-go/redlock/bench/peers/drivers"
)

func main() {
	program := harness.Program{
		Drivers: drivers.All(),
		Chosen:  drivers.Usual(),
		Real:    true,
		Notes:   notes(),
		Suite:   harness.Suite{Sections: harness.Sections("1,64", "64")},
	}
	program.Execute()
}
