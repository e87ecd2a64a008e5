// Command shared measures how long callers wait who share a lock, and those beside them who want it for themselves.
//
//	go run ./bench/shared -d 10s 2x64:read:20ms 1x1:write:1ms
//
// Package crowd has the crowds.
package main

import "github.com/redlock-go/redlock/bench/crowd"

func main() { crowd.Main(map[string]crowd.Open{"redlock": crowd.Ours}) }
