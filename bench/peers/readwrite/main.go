// Command readwrite measures read/write locks: this library's shared locks, and two others on one server.
//
//	go run ./readwrite -n 1 1x64:read:0s
//	go run ./readwrite -n 1 -d 10s 1x64:read:20ms 1x1:write:1ms
//	go run ./readwrite -library redlock 1x64:read:0s            # on a majority of five
//
// Package crowd of the parent module has the crowds, package drivers the libraries.
package main

import (
	"github.com/redlock-go/redlock/bench/crowd"
	"github.com/redlock-go/redlock/bench/peers/drivers"
)

func main() {
	crowd.Main(map[string]crowd.Open{"redlock": crowd.Ours, "hash": drivers.Hash, "counter": drivers.Counter})
}
