// Package growth measures what only makes sense for one client at a time: what
// it costs while it does nothing or holds many locks, and what several of them
// do to each other.
package growth

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/redlock-go/redlock/bench/harness"
)

// Run measures everything against the masters and prints it line by line. It
// takes some minutes.
func Run(ctx context.Context, nodes []string, out io.Writer) error {
	for _, part := range []func(context.Context, []string, io.Writer) error{idle, held, clients, processes} {
		if err := part(ctx, nodes, out); err != nil {
			return err
		}
	}
	return nil
}

// footprint is what a process holds on to.
type footprint struct {
	bytes       int64
	goroutines  int
	descriptors int
}

// measure collects garbage first, so that nothing is counted but what is in
// use.
func measure() footprint {
	var mem runtime.MemStats
	runtime.GC()
	runtime.GC() // what a pool has let go of at the first
	runtime.ReadMemStats(&mem)
	return footprint{int64(mem.HeapAlloc + mem.StackInuse), runtime.NumGoroutine(), harness.OpenDescriptors()}
}

// since is what there is more than before.
func (f footprint) since(before footprint) footprint {
	return footprint{f.bytes - before.bytes, f.goroutines - before.goroutines, f.descriptors - before.descriptors}
}

// timing is that of the cells measured here.
var timing = harness.Timing{Warmup: 300 * time.Millisecond, Window: 2 * time.Second}

// line prints one measurement.
func line(out io.Writer, what, format string, args ...any) {
	fmt.Fprintf(out, "%-36s%s\n", what, fmt.Sprintf(format, args...))
}
