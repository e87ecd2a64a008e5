// Package underlock measures the part of the client's CPU that one goroutine at a time can use: it runs under the driver lock.
package underlock

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"strconv"
	"time"

	"github.com/redlock-go/redlock/bench/harness"
	"github.com/redlock-go/redlock/bench/ours"
	"github.com/redlock-go/redlock/bench/result"
)

// locked matches what runs with the driver lock: the turns of the reader, of a submitter and of the watchdog. The
// reader gives the lock up while callers run, but then they have stacks of their own.
const locked = `engine\.\(\*driver\)\.(receive|turnOf|tick)$`

// lockPart names the notes.
const lockPart = "client CPU under the driver lock"

// Run measures that part by a CPU profile. The profile is read by go tool pprof; without it there is no note.
func Run(ctx context.Context, nodes []string, note func(result.Note)) error {
	for _, callers := range []int{64, 512, 2048} {
		r, share, err := profiled(ctx, nodes, callers)
		if err != nil {
			return err
		}
		if share > 0 {
			note(result.Note{Part: lockPart, What: fmt.Sprint(callers, " callers"), Figures: []result.Figure{
				{Value: share, Unit: "%"}, {Value: r.CPUPerPair, Unit: "µs of CPU a pair"}}})
		}
	}
	return nil
}

// profiled measures one cell, and which part of its profile is locked, in per cent; 0: not known.
func profiled(ctx context.Context, nodes []string, callers int) (r result.Result, share float64, err error) {
	dir, err := os.MkdirTemp("", "bench-lock-")
	if err != nil {
		return r, 0, err
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "profile")
	f, err := os.Create(name)
	if err != nil {
		return r, 0, err
	}
	defer f.Close()
	if err := pprof.StartCPUProfile(f); err != nil {
		return r, 0, nil // another profile is being made
	}
	cfg := harness.Config{Nodes: nodes, TTL: time.Minute, Scenario: harness.Uncontended, Concurrency: callers, Keys: harness.Keys(callers)}
	r, err = harness.Measure(ctx, ours.Driver{}, cfg, harness.Timing{Warmup: 300 * time.Millisecond, Window: window})
	pprof.StopCPUProfile()
	if err != nil {
		return r, 0, err
	}
	top, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-nodefraction=0", "-nodecount=100000", "-focus="+locked, name).Output()
	if err != nil {
		return r, 0, nil // no tool
	}
	return r, focused(top), nil
}

// window has some hundred samples of a profile.
const window = 5 * time.Second

// showing is the line about all stacks that a table of go tool pprof shows.
var showing = regexp.MustCompile(`Showing nodes accounting for \S+ ([0-9.]+)% of `)

// focused is their part of the profile, in per cent.
func focused(top []byte) (share float64) {
	if m := showing.FindSubmatch(top); m != nil {
		share, _ = strconv.ParseFloat(string(m[1]), 64)
	}
	return share
}
