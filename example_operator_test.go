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
	client, err := redlock.New(redlock.Config{Nodes: nodes})
	if err != nil {
		log.Fatal(err)
	}
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
	client, err := redlock.New(redlock.Config{Groups: [][]string{nodes[:3], nodes[3:]}, NodeTimeout: time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	lock, err := client.AcquireAll(context.Background(), 10*time.Second, "{order:7}:stock", "{order:7}:payment")
	if err != nil {
		log.Fatal(err)
	}
	defer lock.ReleaseAsync()
	state, err := client.Inspect(context.Background(), "{order:7}:stock")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(state.Nodes), "of", len(client.Stats().Nodes), "nodes have the key:", state.IsHeldBy(lock))
	// Output: 3 of 6 nodes have the key: true
}

// Nodes with TLS and a password that changes: Credentials and TLSFor are asked at every dial.
func ExampleConfig_tls() {
	authority := httptest.NewTLSServer(nil) // for its certificate, of 127.0.0.1
	defer authority.Close()
	var nodes []string
	for range 3 {
		master, err := fakeredis.Start(fakeredis.Options{TLS: authority.TLS, User: "locks", Password: "sesame"})
		if err != nil {
			log.Fatal(err)
		}
		defer master.Close()
		nodes = append(nodes, "rediss://"+master.Addr())
	}
	trust := authority.Client().Transport.(*http.Transport).TLSClientConfig
	client, err := redlock.New(redlock.Config{
		Nodes:       nodes,
		NodeTimeout: time.Second,
		TLSFor:      func(node string) *tls.Config { return trust }, // or TLS, if it is always the same
		Credentials: func(ctx context.Context, node string) (user, password string, err error) {
			return "locks", "sesame", nil // from a secret store
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	fmt.Println(client.Ready(context.Background()))
	// Output: <nil>
}

// fenced is a client of new nodes.
func fenced(nodes ...string) *redlock.Client {
	client, err := redlock.New(redlock.Config{Nodes: nodes, NodeTimeout: time.Second, Fenced: true, MaxTTL: time.Second})
	if err != nil {
		log.Fatal(err)
	}
	return client
}

// New nodes of a fenced fleet have no vote until an operator has said that they are new.
func ExampleClient_InitFencing() {
	nodes, stop := startNodes(3)
	defer stop()
	client := fenced(nodes...)
	defer client.Close()
	ctx := context.Background()
	if err := client.InitFencing(ctx); err != nil { // once, by hand: redlock fence init
		log.Fatal(err)
	}
	lock, err := client.Acquire(ctx, "orders:42", time.Second)
	fmt.Println(lock.Fence() > 0, err)
	// Output: true <nil>
}

// Two of three nodes have lost the tokens. The resource knows the largest that it has seen.
func ExampleClient_RecoverFencing() {
	var nodes []string
	var masters []*fakeredis.Server
	for range 3 {
		master, err := fakeredis.Start(fakeredis.Options{})
		if err != nil {
			log.Fatal(err)
		}
		defer master.Close()
		masters, nodes = append(masters, master), append(nodes, master.Addr())
	}
	client := fenced(nodes...)
	defer client.Close()
	ctx := context.Background()
	if err := client.InitFencing(ctx); err != nil {
		log.Fatal(err)
	}
	var largest uint64
	write := func(ctx context.Context) error {
		fence, _ := redlock.FenceFrom(ctx)
		fmt.Println("larger:", fence > largest)
		largest = fence // in the database, with what is written
		return nil
	}
	if err := client.Do(ctx, "orders:42", time.Second, write); err != nil {
		log.Fatal(err)
	}
	masters[0].Flush()
	masters[1].Flush()
	// ... redlock.ErrForgotten; MaxTTL later, when no attempt from before is under way ...
	if err := client.RecoverFencing(ctx, largest); err != nil {
		log.Fatal(err)
	}
	fmt.Println(client.Do(ctx, "orders:42", time.Second, write))
	// Output:
	// larger: true
	// larger: true
	// <nil>
}

// The nodes of a fenced fleet change: one client of both lists makes the call when no client of the old list is left.
func ExampleClient_ChangeFencing() {
	nodes, stop := startNodes(4)
	defer stop()
	ctx := context.Background()
	old := fenced(nodes[:3]...)
	if err := old.InitFencing(ctx); err != nil {
		log.Fatal(err)
	}
	old.Close()
	both, err := redlock.New(redlock.Config{
		Nodes: nodes[:3], NextNodes: nodes[1:], NodeTimeout: time.Second, Fenced: true, MaxTTL: time.Second,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(both.ChangeFencing(ctx))
	both.Close()
	next := fenced(nodes[1:]...)
	defer next.Close()
	fmt.Println(next.Ready(ctx))
	// Output:
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
	lock, err := client.Acquire(ctx, "orders:42", 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	defer lock.ReleaseAsync()
	for _, key := range []string{"orders:42", "orders:43"} {
		state, err := client.Inspect(ctx, key)
		if err != nil {
			log.Fatal(err)
		}
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
	nodes, stop := startNodes(3)
	defer stop()
	client, err := redlock.New(redlock.Config{Nodes: nodes, NodeTimeout: time.Second, Hooks: redlock.Hooks{
		Acquire: func(a redlock.Acquisition) { fmt.Println(a.Key, "after", a.Attempts, "attempt,", a.Err) },
		Vote: func(v redlock.Vote) {
			if v.Outcome != redlock.Granted {
				log.Printf("%s: %v: %v", v.Addr, v.Outcome, v.Err)
			}
		},
		NodeDown: func(n redlock.Node) { log.Printf("%s is down: %v", n.Addr, n.Err) },
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	fmt.Println(client.Do(context.Background(), "orders:42", 10*time.Second, func(context.Context) error { return nil }))
	fmt.Println([]redlock.Outcome{redlock.Granted, redlock.Denied, redlock.Failed})
	// Output:
	// orders:42 after 1 attempt, <nil>
	// <nil>
	// [granted denied failed]
}
