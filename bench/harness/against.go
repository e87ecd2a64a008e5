package harness

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/redlock-go/redlock/bench/place"
	"github.com/redlock-go/redlock/bench/result"
)

// againstDefaults are the flags of a comparison that are not given.
var againstDefaults = []string{"-scenario", string(Uncontended), "-c", "1,8,64,512", "-driver", "redlock", "-rounds", "7", "-d", "500ms", "-warmup", "200ms"}

// errSlower is for a comparison in which the source tree lost.
var errSlower = errors.New("slower than the other commit")

// side is one of two programs that take turns.
type side struct {
	name   string
	binary string
	env    []string
}

// compared are the figures of which ratios are shown, and whether more is better.
var compared = []struct {
	name string
	more bool
	of   func(*result.Figures) float64
}{
	{"pairs/s", true, func(f *result.Figures) float64 { return f.PairsPerSec }},
	{"client CPU", false, func(f *result.Figures) float64 { return f.CPUPerPair }},
	{"servers' CPU", false, func(f *result.Figures) float64 { return f.ServerCPU }},
}

// against compares the source tree with another commit of it, on the same servers.
func (p Program) against(ctx context.Context, opts Options, out *output) (err error) {
	dir, err := os.MkdirTemp("", "bench-against-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	sides, err := p.build(ctx, dir, opts.Against)
	if err != nil {
		return fmt.Errorf("-against %s: %w", opts.Against, err)
	}
	s, err := open(opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.look(ctx); err != nil {
		return err
	}
	out.begin(newHead(ctx, opts, s.servers, Section{}, nil))
	return s.compare(ctx, opts, sides, out)
}

// build makes programs of a commit and of the source tree as it is now, both in the same way.
func (p Program) build(ctx context.Context, dir, commit string) (sides [2]side, err error) {
	run := func(name string, args ...string) string {
		if err != nil {
			return ""
		}
		cmd := exec.CommandContext(ctx, name, args...)
		var failed bytes.Buffer
		cmd.Stderr = &failed
		var printed []byte
		if printed, err = cmd.Output(); err != nil {
			err = fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(failed.Bytes()))
		}
		return string(bytes.TrimSpace(printed))
	}
	tree := run("git", "rev-parse", "--show-toplevel")
	hash := run("git", "rev-parse", "--verify", commit+"^{commit}")
	other := filepath.Join(dir, "tree")
	run("git", "clone", "-q", "--shared", "--no-checkout", tree, other)
	run("git", "-C", other, "checkout", "-q", hash)
	for i, from := range []string{other, tree} {
		s := &sides[i]
		s.binary = filepath.Join(dir, "bench-"+strconv.Itoa(i))
		run("go", "build", "-C", from, "-trimpath", "-buildvcs=false", "-o", s.binary, p.Source)
	}
	sides[0].name, sides[1].name = hash[:min(len(hash), 12)], "tree"
	return sides, err
}

// compare has the sides take turns in every cell, and shows the ratio of the second to the first.
func (s *site) compare(ctx context.Context, opts Options, sides [2]side, out *output) error {
	table := tabwriter.NewWriter(out.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	heading := "\t"
	for _, c := range compared {
		heading += fmt.Sprintf("%s %s\t%s\tratio\tmin–max\t", c.name, sides[0].name, sides[1].name)
	}
	fmt.Fprintln(table, heading)
	var slower []string
	for _, cell := range opts.cells() {
		for _, driver := range opts.Drivers {
			rounds, err := s.rounds(ctx, opts, sides, driver, cell)
			if err != nil {
				return err
			}
			for _, r := range rounds {
				for i, one := range r.results {
					one.Driver += " (" + sides[i].name + ")"
					out.add(result.Line{Result: one})
				}
			}
			what := fmt.Sprintf("%s, %s %d", driver, cell.Scenario, cell.Concurrency)
			line := what + "\t"
			for _, c := range compared {
				ratios, medians := paired(rounds, c.of)
				if len(ratios) == 0 {
					line += "–\t–\t–\t–\t"
					continue
				}
				low, high := ratios[0], ratios[len(ratios)-1]
				line += fmt.Sprintf("%.4g\t%.4g\t%.3f\t%.3f–%.3f\t", medians[0], medians[1], median(ratios), low, high)
				if limit := 1 + opts.Bound/100; c.more && high < 1/limit || !c.more && low > limit {
					slower = append(slower, fmt.Sprintf("%s: %s %.3f (%.3f–%.3f)", what, c.name, median(ratios), low, high))
				}
			}
			fmt.Fprintln(table, line)
		}
	}
	if !out.json {
		if err := table.Flush(); err != nil {
			return err
		}
	}
	if len(slower) > 0 {
		return fmt.Errorf("%w by more than %g %% in every round: %s", errSlower, opts.Bound, strings.Join(slower, "; "))
	}
	return nil
}

// paired are the sorted ratios of the rounds, each of two that were measured one after the other, and the
// medians of both sides. There are none where a side has no such figure.
func paired(rounds []match, of func(*result.Figures) float64) (ratios []float64, medians [2]float64) {
	var all [2][]float64
	for _, r := range rounds {
		old, now := of(&r.results[0].Figures), of(&r.results[1].Figures)
		if old == 0 || now == 0 {
			return nil, medians
		}
		all[0], all[1], ratios = append(all[0], old), append(all[1], now), append(ratios, now/old)
	}
	for i := range all {
		slices.Sort(all[i])
		medians[i] = median(all[i])
	}
	slices.Sort(ratios)
	return ratios, medians
}

// median is the median of sorted numbers.
func median(all []float64) float64 { return (all[(len(all)-1)/2] + all[len(all)/2]) / 2 }

// turnEnv marks a process of one turn, which measures by itself.
const turnEnv = "REDLOCK_BENCH_TURN"

// match is a result of each side, and the part of the time for which other processes of the machine used a
// processor, at most. It includes interrupts, which are those of the network mostly.
type match struct {
	results [2]*result.Result
	others  float64
}

const (
	// disturbed is how much more of others a round may have than the best one.
	disturbed = 0.04
	// patience bounds the rounds that are made until enough of them were not disturbed.
	patience = 3
)

// rounds measures a driver in a cell. Further rounds replace the most disturbed ones.
func (s *site) rounds(ctx context.Context, opts Options, sides [2]side, driver string, cell result.Cell) (all []match, err error) {
	calm := func() []match {
		slices.SortStableFunc(all, func(a, b match) int { return cmp.Compare(a.others, b.others) })
		n := slices.IndexFunc(all, func(r match) bool { return r.others > all[0].others+disturbed })
		if n < 0 {
			n = len(all)
		}
		return all[:n]
	}
	for n := 0; n < patience*opts.Rounds && len(calm()) < opts.Rounds; n++ {
		one := match{others: math.Inf(-1)}
		for turn := range sides {
			i := (n + turn) % len(sides)
			r, others, err := s.turn(ctx, opts, sides[i], driver, s.addrs[:cell.Nodes], cell)
			switch {
			case ctx.Err() != nil:
				return nil, errInterrupted
			case err == nil && r.Error != "":
				err = errors.New(r.Error)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", sides[i].name, err)
			}
			r.Round = n + 1
			one.results[i], one.others = r, max(one.others, others)
		}
		all = append(all, one)
	}
	return all[:opts.Rounds], nil
}

// turn has one side measure one driver in one cell, in a process of its own. Others is the part of the time for which
// processes but this and the servers used a processor.
func (s *site) turn(ctx context.Context, opts Options, of side, driver string, nodes []string, cell result.Cell) (r *result.Result, others float64, err error) {
	args := append([]string{"-json", "-nodes", join(nodes), "-driver", driver,
		"-d", opts.Timing.Window.String(), "-warmup", opts.Timing.Warmup.String(), "-ttl", opts.TTL.String()}, flagsOf(cell)...)
	cmd := exec.CommandContext(ctx, of.binary, args...)
	cmd.Env = append(append(os.Environ(), turnEnv+"=1"), of.env...)
	var printed, failed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &failed
	start, idle, servers := time.Now(), idleTime(), s.used(ctx)
	if err := cmd.Run(); err != nil && printed.Len() == 0 {
		return nil, 0, fmt.Errorf("%w: %s", err, bytes.TrimSpace(failed.Bytes()))
	}
	if served := between(servers, s.used(ctx)); served > 0 && idle > 0 { // else it is not known
		took := time.Since(start)
		used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime() + time.Duration(served*float64(time.Microsecond))
		others = float64(took*time.Duration(place.Processors())-(idleTime()-idle)-used) / float64(took)
	}
	lines, err := result.Read(&printed, "")
	for _, l := range lines {
		if l.Result != nil {
			return l.Result, others, nil
		}
	}
	return nil, 0, cmp.Or(err, error(io.ErrUnexpectedEOF))
}

// flagsOf are the flags of a cell in which it is not as usual. A program that is older does not know all flags.
func flagsOf(c result.Cell) []string {
	args := []string{"-scenario", string(c.Scenario), "-c", strconv.Itoa(c.Concurrency), "-keylen", strconv.Itoa(c.KeyLen)}
	add := func(name string, value any, usual bool) {
		if !usual {
			args = append(args, name, fmt.Sprint(value))
		}
	}
	add("-rtt", c.RTT, c.RTT == 0)
	add("-jitter", c.Jitter, c.Jitter == 0)
	add("-gomaxprocs", c.Procs, c.Procs == 0)
	add("-hold", c.Hold, c.Hold == 0)
	add("-rate", c.Rate, c.Rate == 0)
	add("-procs", c.Processes, c.Processes == 0)
	add("-keys", c.Keys, c.Keys == 0)
	if c.Once {
		args = append(args, "-once")
	}
	return args
}
