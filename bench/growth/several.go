package growth

import (
	"bytes"
	"context"
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
	"github.com/redlock-go/redlock/bench/result"
)

// several is how many clients share the load, and load how many goroutines
// there are of all of them together.
var several = []int{1, 2, 4, 8}

const load = 512

// load tells of one load.
func (t teller) load(n int, r result.Result) {
	t.tell(strconv.Itoa(n),
		result.Figure{Value: math.Round(r.PairsPerSec), Unit: "pairs/s"},
		result.Figure{Value: math.Round(r.P50), Unit: "µs p50"},
		result.Figure{Value: math.Round(r.P99), Unit: "µs p99"},
		result.Figure{Value: r.CPUPerPair, Unit: "µs of CPU a pair"},
		result.Figure{Value: r.Errors, Unit: "errors"})
}

// clients measures several clients in this process.
func clients(ctx context.Context, nodes []string, note func(result.Note)) error {
	out := teller{fmt.Sprintf("several clients in one process, %d goroutines in all", load), note}
	for _, n := range several {
		cfg := harness.Config{Nodes: nodes, TTL: heldTTL, Scenario: harness.Uncontended, Concurrency: load, Keys: harness.Keys(load)}
		r, err := harness.Measure(ctx, ours.Driver{Clients: n}, cfg, timing)
		if err != nil {
			return err
		}
		out.load(n, r)
	}
	return nil
}

// processes measures several processes with one client each: this program runs
// itself.
func processes(ctx context.Context, nodes []string, note func(result.Note)) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	out := teller{fmt.Sprintf("several processes, %d goroutines in all, the worst p50 and p99", load), note}
	for _, n := range several {
		var (
			wg      sync.WaitGroup
			results = make([]result.Result, n)
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
		var sum result.Result
		for _, r := range results {
			sum.PairsPerSec += r.PairsPerSec
			sum.P50, sum.P99 = max(sum.P50, r.P50), max(sum.P99, r.P99)
			sum.CPUPerPair += r.CPUPerPair * r.PairsPerSec
			sum.Errors += r.Errors
		}
		sum.CPUPerPair /= max(sum.PairsPerSec, 1)
		out.load(n, sum)
	}
	return nil
}

// process runs this program once more for a single cell.
func process(ctx context.Context, self string, nodes []string, concurrency int) (result.Result, error) {
	cmd := exec.CommandContext(ctx, self, "-json", "-driver", ours.Driver{}.Name(), "-scenario", string(harness.Uncontended),
		"-nodes", strings.Join(nodes, ","), "-c", strconv.Itoa(concurrency),
		"-d", timing.Window.String(), "-warmup", timing.Warmup.String())
	var said, lines bytes.Buffer
	cmd.Stdout, cmd.Stderr = &lines, &said
	if err := cmd.Run(); err != nil {
		return result.Result{}, fmt.Errorf("%w: %s", err, said.String())
	}
	all, err := result.Read(&lines, "")
	for _, l := range all {
		if l.Result != nil {
			return *l.Result, nil
		}
	}
	return result.Result{}, errors.Join(errors.New("a process without a result"), err)
}
