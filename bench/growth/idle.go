package growth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/bench/harness"
	"github.com/redlock-go/redlock/bench/result"
)

// idle measures a hundred clients that have been used once and then are left
// alone.
func idle(ctx context.Context, nodes []string, note func(result.Note)) (err error) {
	const (
		many = 100
		rest = 3 * time.Second
	)
	out := teller{fmt.Sprintf("an idle client, of %d", many), note}
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
		lock, err := c.Acquire(ctx, fmt.Sprintf("idle:%d", i), time.Minute)
		if err != nil {
			return err
		}
		if err := lock.Release(ctx); err != nil {
			return err
		}
	}
	time.Sleep(rest) // some things run for a while after an operation ends
	each := harness.ReadHoldings(true).Since(before)
	out.tell("holds",
		result.Figure{Value: float64(each.Bytes) / many / 1024, Unit: "KiB"},
		result.Figure{Value: float64(each.Goroutines) / many, Unit: "goroutines"},
		result.Figure{Value: float64(each.Descriptors) / many, Unit: "descriptors"})

	start, cpu := time.Now(), harness.CPUTime()
	time.Sleep(rest)
	used := harness.CPUTime() - cpu
	out.tell("CPU, the runtime's included",
		result.Figure{Value: float64(used.Nanoseconds()) / 1e3 / many / time.Since(start).Seconds(), Unit: "µs a second"})
	return nil
}
