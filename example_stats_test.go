package redlock_test

import (
	"context"
	"encoding/json"
	"expvar"
	"fmt"
	"log"
	"time"

	"github.com/redlock-go/redlock"
)

// Stats and Nodes are exported with expvar: a program with an HTTP server then
// shows them at /debug/vars. Durations are in nanoseconds.
func ExampleClient_Stats() {
	nodes, stop := startNodes(3)
	defer stop()
	client, err := redlock.New(redlock.Config{Nodes: nodes, NodeTimeout: time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	vars := new(expvar.Map)
	vars.Set("stats", expvar.Func(func() any { return client.Stats() }))
	vars.Set("nodes up", expvar.Func(func() any {
		up := 0
		for _, node := range client.Nodes() {
			if node.Up {
				up++
			}
		}
		return up
	}))
	if expvar.Get("redlock") == nil { // a name can be published once
		expvar.Publish("redlock", vars)
	}

	ctx := context.Background()
	for range 3 {
		if lock, err := client.TryAcquire(ctx, "orders:42", 10*time.Second); err == nil {
			defer lock.Release(ctx)
		}
	}

	// What a monitor that reads /debug/vars would see.
	var seen struct {
		Acquire redlock.Results
		Nodes   []struct{ Addr, Err string }
	}
	if err := json.Unmarshal([]byte(vars.Get("stats").String()), &seen); err != nil {
		log.Fatal(err)
	}
	fmt.Println(seen.Acquire.Won, "acquired,", seen.Acquire.Denied, "taken")
	fmt.Println(vars.Get("nodes up"), "of", len(seen.Nodes), "nodes are up")
	// Output:
	// 1 acquired, 2 taken
	// 3 of 3 nodes are up
}

// A hook for each attempt is where a program measures how long locks take.
func ExampleHooks() {
	nodes, stop := startNodes(3)
	defer stop()
	client, err := redlock.New(redlock.Config{
		Nodes:       nodes,
		NodeTimeout: time.Second,
		Hooks: redlock.Hooks{
			Attempt: func(a redlock.Attempt) {
				// ... histogram.Observe(a.Duration.Seconds()) ...
				fmt.Printf("%v %s: %v\n", a.Kind, a.Key, a.Err)
			},
			LockLost: func(key string, err error) { log.Printf("lost %s: %v", key, err) },
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	ctx := context.Background()
	lock, err := client.Acquire(ctx, "orders:42", 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	if err := lock.Release(ctx); err != nil {
		log.Print(err)
	}
	// Output:
	// acquire orders:42: <nil>
	// release orders:42: <nil>
}
