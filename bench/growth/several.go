package growth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"

	"github.com/redlock-go/redlock/bench/harness"
	"github.com/redlock-go/redlock/bench/ours"
)

// several is how many clients share the load, and load how many goroutines
// there are of all of them together.
var several = []int{1, 2, 4, 8}

const load = 512

// figures are those of one load.
func figures(rate, p50, p99, cpu float64, failures uint64) []harness.Figure {
	return []harness.Figure{
		{Value: math.Round(rate), Unit: "pairs/s"},
		{Value: math.Round(p50), Unit: "µs p50"},
		{Value: math.Round(p99), Unit: "µs p99"},
		{Value: cpu, Unit: "µs of CPU a pair"},
		{Value: float64(failures), Unit: "errors"},
	}
}

// clients measures several clients in this process.
func clients(ctx context.Context, nodes []string, note func(harness.Note)) error {
	out := teller{fmt.Sprintf("several clients in one process, %d goroutines in all", load), note}
	for _, n := range several {
		cfg := harness.Config{Nodes: nodes, TTL: heldTTL, Scenario: harness.Uncontended, Concurrency: load, Keys: harness.Keys(load)}
		r, err := harness.Measure(ctx, ours.Driver{Clients: n}, cfg, timing)
		if err != nil {
			return err
		}
		out.tell(strconv.Itoa(n), figures(r.PairsPerSec, r.P50, r.P99, r.CPUPerPair, r.Errors)...)
	}
	return nil
}

// processes measures several processes with one client each: this program runs
// itself.
func processes(ctx context.Context, nodes []string, note func(harness.Note)) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	out := teller{fmt.Sprintf("several processes, %d goroutines in all, the worst p50 and p99", load), note}
	for _, n := range several {
		var (
			wg      sync.WaitGroup
			results = make([]harness.Result, n)
			errs    = make([]error, n)
		)
		for i := range n {
			wg.Add(1)
			go func() {
				defer wg.Done()
				results[i], errs[i] = process(ctx, self, nodes, load/n)
			}()
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		var rate, p50, p99, cpu float64
		var failures uint64
		for _, r := range results {
			rate += r.PairsPerSec
			p50 = max(p50, r.P50)
			p99 = max(p99, r.P99)
			cpu += r.CPUPerPair * r.PairsPerSec
			failures += r.Errors
		}
		out.tell(strconv.Itoa(n), figures(rate, p50, p99, cpu/max(rate, 1), failures)...)
	}
	return nil
}

// process runs this program once more for a single cell.
func process(ctx context.Context, self string, nodes []string, concurrency int) (r harness.Result, err error) {
	cmd := exec.CommandContext(ctx, self, "-json", "-driver", ours.Driver{}.Name(), "-scenario", string(harness.Uncontended),
		"-nodes", strings.Join(nodes, ","), "-c", strconv.Itoa(concurrency),
		"-d", timing.Window.String(), "-warmup", timing.Warmup.String())
	var said bytes.Buffer
	cmd.Stderr = &said
	text, err := cmd.Output()
	if err != nil {
		return r, fmt.Errorf("%w: %s", err, said.String())
	}
	return r, json.Unmarshal(text, &r)
}
