package redlock_test

import (
	"context"
	"errors"
	"expvar"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
)

// startNodes stands for your masters.
func startNodes(n int) (nodes []string, stop func()) {
	var servers fakeredis.Servers
	for range n {
		servers = append(servers, must(fakeredis.Start(fakeredis.Options{})))
	}
	return fakeredis.Addrs(servers), func() { servers.Each(func(s *fakeredis.Server) { _ = s.Close() }) }
}

// must is the value of a call that these examples cannot do without. What a program does with errors is shown by Example and
// by those of the errors.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func Example() {
	nodes, stop := startNodes(5) // "10.0.0.1:6379", "10.0.0.2:6379", …
	defer stop()

	client, err := redlock.New(redlock.Config{Nodes: nodes})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	// Wait for the lock for a minute at most.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	lock, err := client.Acquire(ctx, "orders:42", 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("acquired", lock.Key())
	// ... work for no longer than lock.Remaining() ...
	if err := lock.Release(context.Background()); err != nil {
		log.Print(err) // the lock ends with its TTL at the latest
	}
	fmt.Println("released")
	// Output:
	// acquired orders:42
	// released
}

// Three nodes become five while all clients run: each goes through these steps, when all are at the
// one before (package conn, OPERATORS.md).
func ExampleConfig_nextNodes() {
	nodes, stop := startNodes(5)
	defer stop()
	three, five := nodes[:3], nodes

	for step, cfg := range []redlock.Config{
		{Nodes: three},
		{Nodes: three, NextNodes: five}, // a quorum of the three and one of the five
		{Nodes: five},                   // when no client of step 0 runs, and their locks have ended
	} {
		cfg.NodeTimeout = time.Second
		client := must(redlock.New(cfg))
		lock := must(client.Acquire(context.Background(), "orders:42", 10*time.Second))
		fmt.Printf("step %d: acquired on %d nodes, %v\n", step, len(client.Stats().Nodes), lock.Release(context.Background()))
		_ = client.Close()
	}
	// Output:
	// step 0: acquired on 3 nodes, <nil>
	// step 1: acquired on 5 nodes, <nil>
	// step 2: acquired on 5 nodes, <nil>
}

func ExampleClient_TryAcquire() {
	client, stop := connect()
	defer stop()
	ctx := context.Background()
	for range 2 {
		lock, err := client.TryAcquire(ctx, "orders:42", 10*time.Second)
		switch {
		case err == nil:
			fmt.Println("it is ours")
			defer lock.Release(ctx)
		case errors.Is(err, redlock.ErrTaken):
			fmt.Println("another holder is at it")
		default:
			log.Fatal(err) // see the example of ErrTaken
		}
	}
	// Output:
	// it is ours
	// another holder is at it
}

func ExampleLock_Extend() {
	client, stop := connect()
	defer stop()
	ctx := context.Background()
	lock := must(client.Acquire(ctx, "orders:42", 2*time.Second))
	defer lock.Release(ctx)
	for step := range 3 {
		// Before each step, see to it that there is time enough for it.
		if lock.Remaining() < 5*time.Second {
			if err := lock.Extend(ctx, 10*time.Second); err != nil {
				log.Fatal(err) // stop working: Remaining says how soon
			}
			fmt.Println("extended before step", step)
		}
	}
	// Output: extended before step 0
}

func ExampleQuorumError() {
	nodes, stop := startNodes(1)
	defer stop()
	client := must(redlock.New(redlock.Config{Nodes: append(nodes, "127.0.0.1:1", "127.0.0.1:2")})) // where no server is
	defer client.Close()

	_, err := client.TryAcquire(context.Background(), "orders:42", 10*time.Second)
	var quorum *redlock.QuorumError
	if errors.As(err, &quorum) {
		fmt.Printf("%d of %d nodes failed:\n", len(quorum.Failed), quorum.Nodes)
		for _, node := range quorum.Failed {
			fmt.Println(node.Addr) // and why: node.Err
		}
	}
	var first redlock.NodeError
	fmt.Println("a node's:", errors.As(err, &first))
	// Output:
	// 2 of 3 nodes failed:
	// 127.0.0.1:1
	// 127.0.0.1:2
	// a node's: true
}

// Stats are exported with expvar: a program with an HTTP server then shows them at /debug/vars. Durations are in nanoseconds.
func ExampleClient_Stats() {
	client, stop := connect()
	defer stop()
	if expvar.Get("redlock") == nil { // a name can be published once
		expvar.Publish("redlock", expvar.Func(func() any { return client.Stats() }))
	}
	for range 3 {
		if lock, err := client.TryAcquire(context.Background(), "orders:42", 10*time.Second); err == nil {
			defer lock.ReleaseAsync()
		}
	}
	seen, up := client.Stats(), 0
	for _, node := range seen.Nodes {
		if node.Up {
			up++
		}
	}
	fmt.Println(seen.Acquire.Won, "acquired,", seen.Acquire.Denied, "taken")
	fmt.Println(up, "of", len(seen.Nodes), "nodes are up")
	// Output:
	// 1 acquired, 2 taken
	// 3 of 3 nodes are up
}

// The counts as Prometheus reads them.
func ExampleStats_WriteMetrics() {
	client, stop := connect()
	defer stop()
	http.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4") // a scraper asks for it
		_ = client.Stats().WriteMetrics(w)
	})
	if lock, err := client.TryAcquire(context.Background(), "orders:42", 10*time.Second); err == nil {
		defer lock.ReleaseAsync()
	}
	scrape := httptest.NewRecorder()
	http.DefaultServeMux.ServeHTTP(scrape, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(scrape.Body.String()) {
		if strings.Contains(line, `{kind="acquire",`) {
			fmt.Print(line)
		}
	}
	// Output:
	// redlock_operations_total{kind="acquire",result="won"} 1
	// redlock_operations_total{kind="acquire",result="denied"} 0
	// redlock_operations_total{kind="acquire",result="no_quorum"} 0
	// redlock_operations_total{kind="acquire",result="expired"} 0
	// redlock_operations_total{kind="acquire",result="cancelled"} 0
	// redlock_operations_total{kind="acquire",result="refused"} 0
}

// A job that another process may do as well tries for a moment and leaves it at that. It
// needs two locks, so it asks again and again: for a single one Acquire would be woken.
func ExampleRetry() {
	client, stop := connect(func(c *redlock.Config) {
		c.Retry = redlock.Retry{Min: 5 * time.Millisecond, Max: 20 * time.Millisecond, Attempts: 3}
	})
	defer stop()
	ctx := context.Background()
	lock := must(client.Acquire(ctx, "nightly report", 10*time.Second))
	defer lock.Release(ctx)
	_, err := client.AcquireAll(ctx, 10*time.Second, "nightly report", "weekly report")
	var gaveUp *redlock.AcquireError
	if errors.As(err, &gaveUp) && gaveUp.Ctx == nil {
		fmt.Println("taken:", errors.Is(err, redlock.ErrTaken), "after", gaveUp.Attempts, "attempts")
	}
	fmt.Println(client.Stats().Waits.UsedUp, "used up")
	// Output:
	// taken: true after 3 attempts
	// 1 used up
}

// A hook for each attempt is where a program measures how long locks take.
func ExampleHooks() {
	client, stop := connect(func(c *redlock.Config) {
		c.Hooks.Attempt = func(a redlock.Attempt) {
			// ... histogram.Observe(a.Duration.Seconds()) ...
			fmt.Printf("%v %s: %v\n", a.Kind, a.Key, a.Err)
		}
		c.Hooks.LockLost = func(key string, err error) { log.Printf("lost %s: %v", key, err) }
	})
	defer stop()
	lock := must(client.Acquire(context.Background(), "orders:42", 10*time.Second))
	if err := lock.Release(context.Background()); err != nil {
		log.Print(err)
	}
	// Output:
	// acquire orders:42: <nil>
	// release orders:42: <nil>
}

// connect is New with three nodes. On a busy machine they may be late.
func connect(change ...func(*redlock.Config)) (client *redlock.Client, stop func()) {
	nodes, stopNodes := startNodes(3)
	cfg := redlock.Config{Nodes: nodes, NodeTimeout: time.Minute, StallTimeout: time.Minute, Name: "worker-7"}
	for _, f := range change {
		f(&cfg)
	}
	client = must(redlock.New(cfg))
	if !cfg.Fenced { // New has waited for a quorum
		_ = client.ReadyAll(context.Background())
	}
	return client, func() {
		client.Close()
		stopNodes()
	}
}

func ExampleLock_KeepAlive() {
	client, stop := connect()
	defer stop()
	lock := must(client.Acquire(context.Background(), "orders:42", 10*time.Second))
	ctx, stopKeeping := lock.KeepAlive(context.Background())
	defer stopKeeping()

	// ... work for as long as ctx lives ...
	if err := lock.Release(context.Background()); err != nil {
		log.Print(err)
	}
	fmt.Println(context.Cause(ctx))
	// Output: redlock: no longer kept alive: stopped or released
}

func ExampleClient_AcquireAll() {
	client, stop := connect()
	defer stop()
	ctx := context.Background()
	both := must(client.AcquireAll(ctx, 10*time.Second, "accounts:2", "accounts:1"))
	defer both.ReleaseAsync()
	fmt.Println("acquired", both.Keys())
	_, err := client.TryAcquire(ctx, "accounts:1", time.Second)
	fmt.Println(err)
	// Output:
	// acquired [accounts:1 accounts:2]
	// redlock: taken: another holder has the lock
}

func ExampleClient_Inspect() {
	client, stop := connect()
	defer stop()
	ctx := context.Background()
	lock := must(client.Acquire(ctx, "orders:42", 10*time.Second))
	defer lock.Release(ctx)
	state := must(client.Inspect(ctx, "orders:42"))
	fmt.Println(state.Status, "by", state.Holder, "- ours:", state.IsHeldBy(lock))
	// Output: held by worker-7 - ours: true
}

// A lock is handed to another process, with its token and the end of its validity.
func ExampleClient_Attach() {
	client, stop := connect()
	defer stop()
	ctx := context.Background()
	lock := must(client.Acquire(ctx, "orders:42", 10*time.Second))
	token, validUntil := lock.Token(), time.Now().Add(lock.Remaining())

	// ... in the other process ...
	attached := must(client.Attach(ctx, "orders:42", token, validUntil))
	fmt.Println("released:", attached.Release(ctx) == nil)
	// Output: released: true
}

// A resource that remembers the largest token refuses a holder that comes too late.
func ExampleLock_Fence() {
	client, stop := connect(fenced(100 * time.Millisecond))
	defer stop()
	ctx := context.Background()
	if err := client.InitFencing(ctx); err != nil { // once for new nodes, by hand: redlock fence init
		log.Fatal(err)
	}
	var largest uint64 // in a database: UPDATE ... SET fence = $1 WHERE id = 42 AND fence <= $1
	write := func(fence uint64) bool {
		if fence < largest {
			return false
		}
		largest = fence
		return true
	}
	paused := must(client.Acquire(ctx, "orders:42", 50*time.Millisecond))
	token := paused.Fence()
	// ... its process stands still, and its lock ends ...
	next := must(client.Acquire(ctx, "orders:42", 100*time.Millisecond))
	fmt.Println("the next writes, twice:", write(next.Fence()), write(next.Fence()))
	fmt.Println("the late one writes:", write(token))
	// Output:
	// the next writes, twice: true true
	// the late one writes: false
}
