package redlock_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
)

// A readiness probe does not wait: its context has ended. The error names each node that cannot vote.
func ExampleClient_Ready() {
	nodes, stop := startNodes(3)
	client := must(redlock.New(redlock.Config{Nodes: nodes}))
	defer client.Close()
	probe, cancel := context.WithCancel(context.Background())
	cancel()
	fmt.Println("ready:", client.Ready(probe) == nil)
	stop() // all nodes
	for client.Ready(probe) == nil {
		time.Sleep(time.Millisecond)
	}
	fmt.Println("no quorum:", errors.Is(client.Ready(probe), redlock.ErrNoQuorum))
	// Output:
	// ready: true
	// no quorum: true
}

// Between the restarts of two nodes an operator waits until the first has its vote again.
func ExampleClient_ReadyAll() {
	client, stop := connect()
	defer stop()
	fmt.Println(client.ReadyAll(context.Background()))
	// Output: <nil>
}

// Keys are divided among sets of masters. Those with the same part in braces are in the same one.
func ExampleConfig_groups() {
	nodes, stop := startNodes(6)
	defer stop()
	client := must(redlock.New(redlock.Config{Groups: [][]string{nodes[:3], nodes[3:]}, NodeTimeout: time.Second}))
	defer client.Close()
	lock := must(client.AcquireAll(context.Background(), 10*time.Second, "{order:7}:stock", "{order:7}:payment"))
	defer lock.ReleaseAsync()
	state := must(client.Inspect(context.Background(), "{order:7}:stock"))
	fmt.Println(len(state.Nodes), "of", len(client.Stats().Nodes), "nodes have the key:", state.IsHeldBy(lock))
	// Output: 3 of 6 nodes have the key: true
}

// Nodes with TLS and a password that changes: Credentials and TLSFor are asked at every dial.
func ExampleConfig_tls() {
	authority := httptest.NewTLSServer(nil) // for its certificate, of 127.0.0.1
	defer authority.Close()
	var nodes []string
	for range 3 {
		master := must(fakeredis.Start(fakeredis.Options{TLS: authority.TLS, User: "locks", Password: "sesame"}))
		defer master.Close()
		nodes = append(nodes, "rediss://"+master.Addr())
	}
	trust := authority.Client().Transport.(*http.Transport).TLSClientConfig
	client := must(redlock.New(redlock.Config{
		Nodes:       nodes,
		NodeTimeout: time.Second,
		TLSFor:      func(node string) *tls.Config { return trust }, // or TLS, if it is always the same
		Credentials: func(ctx context.Context, node string) (user, password string, err error) {
			return "locks", "sesame", nil // from a secret store
		},
	}))
	defer client.Close()
	fmt.Println(client.Ready(context.Background()))
	// Output: <nil>
}

// fenced has a client get fencing tokens from its nodes.
func fenced(maxTTL time.Duration) func(*redlock.Config) {
	return func(c *redlock.Config) { c.Fenced, c.MaxTTL = true, maxTTL }
}

// New nodes of a fenced fleet have no vote until an operator has said that they are new.
func ExampleClient_InitFencing() {
	client, stop := connect(fenced(time.Second / 2))
	defer stop()
	ctx := context.Background()
	if err := client.InitFencing(ctx); err != nil { // once, by hand: redlock fence init
		log.Fatal(err)
	}
	lock, err := client.Acquire(ctx, "orders:42", time.Second/2)
	fmt.Println(lock.Fence() > 0, err)
	// Output: true <nil>
}

// Two of three nodes have lost the tokens. The resource knows the largest that it has seen.
func ExampleClient_RecoverFencing() {
	var masters fakeredis.Servers
	for range 3 {
		masters = append(masters, must(fakeredis.Start(fakeredis.Options{})))
	}
	defer masters.Each(func(s *fakeredis.Server) { _ = s.Close() })
	client, stop := connect(fenced(500*time.Millisecond), func(c *redlock.Config) { c.Nodes = fakeredis.Addrs(masters) })
	defer stop()
	ctx := context.Background()
	var largest uint64
	write := func(ctx context.Context) error {
		fence, _ := redlock.FenceFrom(ctx)
		fmt.Println("larger:", fence > largest)
		largest = fence // in the database, with what is written
		return nil
	}
	fmt.Println(client.InitFencing(ctx), client.Do(ctx, "orders:42", 500*time.Millisecond, write))
	masters[0].Flush()
	masters[1].Flush()
	// ... redlock.ErrForgotten; MaxTTL later, when no attempt from before is under way ...
	fmt.Println(client.RecoverFencing(ctx, largest), client.Do(ctx, "orders:42", 500*time.Millisecond, write))
	// Output:
	// larger: true
	// <nil> <nil>
	// larger: true
	// <nil> <nil>
}

// The nodes of a fenced fleet change: one client of both lists makes the call when no client of the old list is left.
func ExampleClient_ChangeFencing() {
	nodes, stop := startNodes(4)
	defer stop()
	ctx := context.Background()
	of := func(now, next []string) *redlock.Client {
		return must(redlock.New(redlock.Config{Nodes: now, NextNodes: next, NodeTimeout: time.Second, Fenced: true, MaxTTL: 100 * time.Millisecond}))
	}
	old := of(nodes[:3], nil)
	fmt.Println(old.InitFencing(ctx))
	old.Close()
	both := of(nodes[:3], nodes[1:])
	fmt.Println(both.ChangeFencing(ctx))
	both.Close()
	next := of(nodes[1:], nil)
	defer next.Close()
	fmt.Println(next.Ready(ctx))
	// Output:
	// <nil>
	// <nil>
	// <nil>
}

// An operator's page says what the nodes have at a key, and which nodes differ.
func ExampleKeyState() {
	client, stop := connect()
	defer stop()
	describe := func(s redlock.KeyState) string {
		switch s.Status {
		case redlock.KeyFree:
			return "free"
		case redlock.KeyHeld:
			return "held by " + s.Holder
		case redlock.KeyShared:
			return fmt.Sprintf("shared by %d holders", s.Holders)
		case redlock.KeyEternal:
			return "no lock: a value without an expiry"
		case redlock.KeySplit:
			return "no holder: attempts under way, or their remains"
		case redlock.KeyUnknown:
		}
		return "unknown: too few nodes answered"
	}
	ctx := context.Background()
	lock := must(client.Acquire(ctx, "orders:42", 10*time.Second))
	defer lock.ReleaseAsync()
	for _, key := range []string{"orders:42", "orders:43"} {
		state := must(client.Inspect(ctx, key))
		silent := slices.DeleteFunc(state.Nodes, func(n redlock.KeyOnNode) bool { return n.Err == nil })
		fmt.Println(key, describe(state), len(silent), "nodes silent")
	}
	fmt.Println(redlock.KeyStatus(redlock.KeyShared))
	// Output:
	// orders:42 held by worker-7 0 nodes silent
	// orders:43 free 0 nodes silent
	// shared
}

// Hooks for a log: each wait, each vote that is no grant, and the nodes.
func ExampleHooks_log() {
	client, stop := connect(func(c *redlock.Config) {
		c.Hooks = redlock.Hooks{
			Acquire: func(a redlock.Acquisition) { fmt.Println(a.Key, "after", a.Attempts, "attempt,", a.Err) },
			Vote: func(v redlock.Vote) {
				if v.Outcome != redlock.Granted {
					log.Printf("%s: %v: %v", v.Addr, v.Outcome, v.Err)
				}
			},
			NodeDown: func(n redlock.Node) { log.Printf("%s is down: %v", n.Addr, n.Err) },
		}
	})
	fmt.Println([]redlock.Outcome{redlock.Granted, redlock.Denied, redlock.Failed})
	_ = client.Do(context.Background(), "orders:42", 10*time.Second, func(context.Context) error { return nil })
	stop() // hooks have heard of all that ended before
	// Output:
	// [granted denied failed]
	// orders:42 after 1 attempt, <nil>
}
