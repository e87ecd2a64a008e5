// Package growth measures one client at a time: what it costs while it is idle or holds many
// locks, and what several clients in one process cost.
package growth

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/bench/harness"
	"github.com/redlock-go/redlock/bench/ours"
	"github.com/redlock-go/redlock/bench/result"
)

// Run measures everything against the masters, and reports it note by note. It takes about two
// minutes.
func Run(ctx context.Context, nodes []string, note func(result.Note)) error {
	return errors.Join(
		idle(ctx, nodes, note),
		held(ctx, nodes, note, 100_000),
		held(ctx, nodes, note, 1_000_000),
		kept(ctx, nodes, note, 1_000),
		kept(ctx, nodes, note, 10_000),
		kept(ctx, nodes, note, 100_000),
		several(ctx, nodes, note),
		underLock(ctx, nodes, note))
}

// figures makes a note.
func figures(part, what string, all ...result.Figure) result.Note {
	return result.Note{Part: part, What: what, Figures: all}
}

// idle measures a hundred clients that were used once.
func idle(ctx context.Context, nodes []string, note func(result.Note)) (err error) {
	const (
		many = 100
		rest = 3 * time.Second
	)
	part := fmt.Sprintf("an idle client, of %d", many)
	before := harness.ReadHoldings(true)
	all := make([]*redlock.Client, 0, many)
	defer func() {
		for _, c := range all {
			err = errors.Join(err, c.Close())
		}
	}()
	for i := range many {
		c, err := redlock.New(redlock.Config{Nodes: nodes})
		if err != nil {
			return err
		}
		all = append(all, c)
		if err := pass(ctx, c, fmt.Sprintf("idle:%d", i)); err != nil {
			return err
		}
	}
	time.Sleep(rest) // some goroutines run for a while after an operation ends
	each := harness.ReadHoldings(true).Since(before)
	note(figures(part, "holds",
		result.Figure{Value: float64(each.Bytes) / many / 1024, Unit: "KiB"},
		result.Figure{Value: float64(each.Goroutines) / many, Unit: "goroutines"},
		result.Figure{Value: float64(each.Descriptors) / many, Unit: "descriptors"}))

	start, cpu := time.Now(), harness.CPUTime()
	time.Sleep(rest)
	used := harness.CPUTime() - cpu
	note(figures(part, "CPU, including the runtime's",
		result.Figure{Value: float64(used.Nanoseconds()) / 1e3 / many / time.Since(start).Seconds(), Unit: "µs a second"}))
	return nil
}

const (
	// heldTTL is longer than the measurement.
	heldTTL = time.Hour
	// load is the number of goroutines.
	load = 512
)

// held measures a client that holds n locks at the same time. Keys and handles belong to the
// caller, and are not counted.
func held(ctx context.Context, nodes []string, note func(result.Note), n int) (err error) {
	part := fmt.Sprintf("%d locks held at once", n)
	c, err := redlock.New(redlock.Config{Nodes: nodes, NodeTimeout: 2 * time.Second})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	prefix := fmt.Sprintf("held:%d:", time.Now().UnixNano())
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint(prefix, i)
	}
	locks, taken := make([]redlock.Lock, n), make([]bool, n)
	// The client first grows to the size that the load alone gives it.
	if err := all(10*load, func(i int) error { return pass(ctx, c, keys[i]) }); err != nil {
		return err
	}

	before := harness.ReadHoldings(true)
	start := time.Now()
	err = all(n, func(i int) (err error) {
		locks[i], err = c.Acquire(ctx, keys[i], heldTTL)
		taken[i] = err == nil
		return err
	})
	if took := time.Since(start); err == nil {
		each := harness.ReadHoldings(true).Since(before)
		note(figures(part, "each lock", result.Figure{Value: float64(each.Bytes) / float64(n), Unit: "bytes"}))
		note(figures(part, "all of them",
			result.Figure{Value: float64(each.Goroutines), Unit: "goroutines more"},
			result.Figure{Value: float64(each.Descriptors), Unit: "descriptors more"}))
		note(figures(part, "acquired", result.Figure{Value: math.Round(float64(n) / took.Seconds()), Unit: "a second"}))
	}
	start = time.Now()
	var lost atomic.Int64
	err = errors.Join(err, all(n, func(i int) error {
		if taken[i] && locks[i].Release(ctx) != nil {
			lost.Add(1)
		}
		return nil
	}))
	note(figures(part, "released",
		result.Figure{Value: math.Round(float64(n) / time.Since(start).Seconds()), Unit: "a second"},
		result.Figure{Value: float64(lost.Load()), Unit: "failed"}))
	return err
}

// kept measures a client that keeps n locks alive, each of which it extends at every third of its TTL.
func kept(ctx context.Context, nodes []string, note func(result.Note), n int) error {
	const ttl = 30 * time.Second
	c, err := redlock.New(redlock.Config{Nodes: nodes, NodeTimeout: 2 * time.Second})
	if err != nil {
		return err
	}
	defer c.Close()
	locks, prefix := make([]redlock.Lock, n), fmt.Sprintf("kept:%d:", time.Now().UnixNano())
	before := harness.ReadHoldings(true)
	if err := all(n, func(i int) (err error) {
		if locks[i], err = c.Acquire(ctx, fmt.Sprint(prefix, i), ttl); err == nil {
			locks[i].KeepAlive(ctx)
		}
		return err
	}); err != nil {
		return err
	}
	each := harness.ReadHoldings(true).Since(before)
	start, cpu := c.Stats().Extend.Won, harness.CPUTime()
	time.Sleep(ttl / 3)
	used, extended := harness.CPUTime()-cpu, c.Stats().Extend.Won-start
	note(figures(fmt.Sprintf("%d locks kept alive, TTL %v", n, ttl), "each lock",
		result.Figure{Value: float64(each.Bytes) / float64(n), Unit: "bytes"},
		result.Figure{Value: float64(used.Nanoseconds()) / 1e3 / float64(max(extended, 1)), Unit: "µs of CPU an extension"},
		result.Figure{Value: float64(c.Stats().Lost), Unit: "lost of all"}))
	for _, lock := range locks {
		lock.ReleaseAsync()
	}
	return c.Shutdown(ctx)
}

// pass acquires a lock and releases it.
func pass(ctx context.Context, c *redlock.Client, key string) error {
	lock, err := c.Acquire(ctx, key, heldTTL)
	if err != nil {
		return err
	}
	return lock.Release(ctx)
}

// all does n things in load goroutines, until one fails.
func all(n int, do func(i int) error) error {
	var (
		wg    sync.WaitGroup
		next  atomic.Int64
		first atomic.Pointer[error]
	)
	for range load {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && first.Load() == nil; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					first.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	wg.Wait()
	if err := first.Load(); err != nil {
		return *err
	}
	return nil
}

// timing is that of the cells with several clients.
var timing = harness.Timing{Warmup: 300 * time.Millisecond, Window: 2 * time.Second}

// clients are the numbers of clients that share the load.
var clients = []int{1, 2, 4, 8}

// several measures several clients in this process.
func several(ctx context.Context, nodes []string, note func(result.Note)) error {
	part := fmt.Sprintf("several clients in one process, %d goroutines in all", load)
	for _, n := range clients {
		cfg := harness.Config{Nodes: nodes, TTL: heldTTL, Scenario: harness.Uncontended, Concurrency: load, Keys: harness.Keys(load)}
		r, err := harness.Measure(ctx, ours.Driver{Clients: n}, cfg, timing)
		if err != nil {
			return err
		}
		note(figures(part, fmt.Sprint(n),
			result.Figure{Value: math.Round(r.PairsPerSec), Unit: "pairs/s"},
			result.Figure{Value: math.Round(r.P50), Unit: "µs p50"},
			result.Figure{Value: math.Round(r.P99), Unit: "µs p99"},
			result.Figure{Value: r.CPUPerPair, Unit: "µs of CPU a pair"},
			result.Figure{Value: r.Errors, Unit: "errors"}))
	}
	return nil
}
