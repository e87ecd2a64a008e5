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
	"github.com/redlock-go/redlock/bench/result"
)

// heldTTL is longer than the measurement.
const heldTTL = time.Hour

// held measures a client that holds many locks at the same time, taken by many
// goroutines. Keys and handles are the caller's, and are not counted.
func held(ctx context.Context, nodes []string, note func(result.Note)) error {
	for _, n := range []int{100_000, 1_000_000} {
		if err := hold(ctx, nodes, note, n); err != nil {
			return err
		}
	}
	return nil
}

func hold(ctx context.Context, nodes []string, note func(result.Note), n int) (err error) {
	const workers = 512
	out := teller{fmt.Sprintf("%d locks held at once", n), note}
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
	locks := make([]redlock.Lock, n)
	// A first wave lets the client grow to what the load alone makes it.
	if err := all(workers, 10*workers, func(i int) error { return pass(ctx, c, keys[i]) }); err != nil {
		return err
	}

	before := harness.ReadHoldings(true)
	start := time.Now()
	err = all(workers, n, func(i int) (err error) {
		locks[i], err = c.Acquire(ctx, keys[i], heldTTL)
		return err
	})
	took := time.Since(start)
	if err == nil {
		each := harness.ReadHoldings(true).Since(before)
		out.tell("each lock", result.Figure{Value: float64(each.Bytes) / float64(n), Unit: "bytes"})
		out.tell("all of them",
			result.Figure{Value: float64(each.Goroutines), Unit: "goroutines more"},
			result.Figure{Value: float64(each.Descriptors), Unit: "descriptors more"})
		out.tell("acquired", result.Figure{Value: math.Round(float64(n) / took.Seconds()), Unit: "a second"})
	}
	start = time.Now()
	var lost atomic.Int64
	err = errors.Join(err, all(workers, n, func(i int) error {
		if locks[i].Key() == "" {
			return nil
		}
		if locks[i].Release(ctx) != nil {
			lost.Add(1)
		}
		return nil
	}))
	out.tell("released",
		result.Figure{Value: math.Round(float64(n) / time.Since(start).Seconds()), Unit: "a second"},
		result.Figure{Value: float64(lost.Load()), Unit: "failed"})
	return err
}

// pass takes a lock and gives it back.
func pass(ctx context.Context, c *redlock.Client, key string) error {
	lock, err := c.Acquire(ctx, key, heldTTL)
	if err != nil {
		return err
	}
	return lock.Release(ctx)
}

// all does n things in a number of goroutines, until one fails.
func all(workers, n int, do func(i int) error) error {
	var (
		wg    sync.WaitGroup
		next  atomic.Int64
		first atomic.Pointer[error]
	)
	for range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				i := int(next.Add(1)) - 1
				if i >= n || first.Load() != nil {
					return
				}
				if err := do(i); err != nil {
					first.CompareAndSwap(nil, &err)
				}
			}
		}()
	}
	wg.Wait()
	if err := first.Load(); err != nil {
		return *err
	}
	return nil
}
