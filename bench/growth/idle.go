package growth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/bench/harness"
)

// idle measures a hundred clients that have been used once and then are left
// alone.
func idle(ctx context.Context, nodes []string, out io.Writer) (err error) {
	const (
		many = 100
		rest = 3 * time.Second
	)
	fmt.Fprintln(out, "\nan idle client")
	before := measure()
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
	time.Sleep(rest) // whatever runs for a while after an operation ends
	each := measure().since(before)
	line(out, "memory", "%.1f KiB", float64(each.bytes)/many/1024)
	line(out, "goroutines", "%.2f", float64(each.goroutines)/many)
	line(out, "descriptors", "%.2f", float64(each.descriptors)/many)

	start, cpu := time.Now(), harness.CPUTime()
	time.Sleep(rest)
	used := harness.CPUTime() - cpu
	line(out, "CPU", "%.3f µs a second (%v of %d clients in %v, the runtime included)",
		float64(used.Nanoseconds())/1e3/many/time.Since(start).Seconds(), used, many, rest)
	return nil
}
