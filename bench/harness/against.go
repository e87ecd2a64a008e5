package harness

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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
var againstDefaults = []string{"-scenario", string(Uncontended), "-c", "1,8,64,512", "-driver", "redlock", "-rounds", "20", "-d", "250ms", "-warmup", "80ms"}

// errSlower is for a comparison in which the source tree lost.
var errSlower = errors.New("slower than the other commit")

// side is one of two programs that take turns.
type side struct {
	name   string
	binary string
	env    []string
}

// figure is one of which ratios are shown; more is better, or worse.
type figure struct {
	name string
	more bool
	of   func(*result.Figures) float64
}

var compared = [...]figure{
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
	heading := "\trounds\t"
	for _, c := range compared {
		heading += fmt.Sprintf("%s %s\t%s\tratio\tinterval\t", c.name, sides[0].name, sides[1].name)
	}
	fmt.Fprintln(table, heading)
	cells := opts.cells()
	score := result.ScoreOf(len(cells) * len(opts.Drivers) * len(compared))
	var slower, undecided []string
	for _, cell := range cells {
		for _, driver := range opts.Drivers {
			began := time.Now()
			rounds, err := s.rounds(ctx, opts, sides, driver, cell, score)
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
			out.progress("against: %s: %d rounds, %v", what, len(rounds), time.Since(began).Round(time.Second))
			if ratios, _ := paired(rounds, compared[0].of); len(ratios) == 0 {
				return fmt.Errorf("%s: no round with a pair on both sides", what)
			}
			line := fmt.Sprintf("%s\t%d\t", what, len(rounds))
			for _, c := range compared {
				ratios, medians := paired(rounds, c.of)
				if len(ratios) == 0 {
					line += "–\t–\t–\t–\t"
					continue
				}
				i := result.IntervalOf(ratios, score)
				line += fmt.Sprintf("%.4g\t%.4g\t%.3f\t%.3f–%.3f\t", medians[0], medians[1], i.Mid, i.Low, i.High)
				switch found := fmt.Sprintf("%s: %s %.3f (%.3f–%.3f)", what, c.name, i.Mid, i.Low, i.High); verdictOf(i, opts.Notice, c.more) {
				case worse:
					slower = append(slower, found)
				case unclear:
					undecided = append(undecided, found)
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
	if len(undecided) > 0 {
		out.progress("against: may be slower by %g %%, and more rounds would tell: %s", opts.Notice, strings.Join(undecided, "; "))
	}
	if len(slower) > 0 {
		return fmt.Errorf("%w: %s", errSlower, strings.Join(slower, "; "))
	}
	return nil
}

// paired are the ratios of the rounds, each of two that were measured one after the other, and the medians of both
// sides. A round in which a side has no such figure is none: other programs have kept it from a processor for all of its
// turn, or nothing measures the figure here.
func paired(rounds []match, of func(*result.Figures) float64) (ratios []float64, medians [2]float64) {
	var all [2][]float64
	for _, r := range rounds {
		old, now := of(&r.results[0].Figures), of(&r.results[1].Figures)
		if old <= 0 || now <= 0 {
			continue
		}
		all[0], all[1], ratios = append(all[0], old), append(all[1], now), append(ratios, now/old)
	}
	for i := range all {
		if len(ratios) > 0 {
			slices.Sort(all[i])
			medians[i] = result.Median(all[i])
		}
	}
	return ratios, medians
}

// turnEnv marks a process of one turn, which measures by itself.
const turnEnv = "REDLOCK_BENCH_TURN"

// match is a result of each side, and the part of the time for which other processes of the machine used a
// processor. It includes interrupts, which are those of the network mostly.
type match struct {
	results [2]*result.Result
	others  float64
}

const (
	// disturbed is how much more of others a round may have than the best one.
	disturbed = 0.04
	// patience bounds the rounds that are made until the undisturbed ones decide.
	patience = 5
)

// calm are the rounds that were not disturbed, and in any case the calmer half.
func calm(all []match) []match {
	slices.SortStableFunc(all, func(a, b match) int { return cmp.Compare(a.others, b.others) })
	first := slices.IndexFunc(all, func(r match) bool { return r.others > all[0].others+disturbed })
	if first < 0 {
		return all
	}
	return all[:max(first, (len(all)+1)/2)]
}

// rounds measures a driver in a cell until the figures are decided.
func (s *site) rounds(ctx context.Context, opts Options, sides [2]side, driver string, cell result.Cell, score float64) (all []match, err error) {
	for n := 0; n < patience*opts.Rounds; n++ {
		if n >= opts.Rounds && isDecided(calm(all), opts, score) {
			break
		}
		var one match
		var took, others time.Duration
		for turn := range sides {
			i := (n + turn) % len(sides)
			r, used, err := s.turn(ctx, opts, sides[i], driver, s.addrs[:cell.Nodes], cell)
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
			one.results[i] = r
			took, others = took+used.took, others+used.others
		}
		one.others = float64(others) / float64(took)
		all = append(all, one)
	}
	return calm(all), nil
}

// isDecided reports whether a figure is worse, or none is unclear.
func isDecided(rounds []match, opts Options, score float64) bool {
	all := level
	for _, c := range compared {
		ratios, _ := paired(rounds, c.of)
		if len(ratios) == 0 {
			continue
		}
		switch verdictOf(result.IntervalOf(ratios, score), opts.Notice, c.more) {
		case worse:
			return true
		case unclear:
			all = unclear
		}
	}
	return all != unclear
}

// usage is how long a turn took, and for how long processes but this one and the servers used a processor: 0 where that
// is not known.
type usage struct{ took, others time.Duration }

// turn has one side measure one driver in one cell, in a process of its own.
func (s *site) turn(ctx context.Context, opts Options, of side, driver string, nodes []string, cell result.Cell) (r *result.Result, u usage, err error) {
	args := append([]string{"-json", "-nodes", join(nodes), "-driver", driver,
		"-d", opts.Timing.Window.String(), "-warmup", opts.Timing.Warmup.String(), "-ttl", opts.TTL.String()}, flagsOf(cell)...)
	if opts.Focus != "" {
		args = append(args, "-focus", opts.Focus)
	}
	cmd := exec.CommandContext(ctx, of.binary, args...)
	cmd.Env = append(append(os.Environ(), turnEnv+"=1"), of.env...)
	var printed, failed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &failed
	start, idle, servers := time.Now(), idleTime(), s.used(ctx)
	if err := cmd.Run(); err != nil && printed.Len() == 0 {
		return nil, u, fmt.Errorf("%w: %s", err, bytes.TrimSpace(failed.Bytes()))
	}
	u.took = time.Since(start)
	if served := between(servers, s.used(ctx)); served > 0 && idle > 0 { // else it is not known
		used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime() + time.Duration(served*float64(time.Microsecond))
		u.others = u.took*time.Duration(place.Processors()) - (idleTime() - idle) - used
	}
	lines, err := result.Read(&printed, "")
	for _, l := range lines {
		if l.Result != nil {
			return l.Result, u, nil
		}
	}
	return nil, u, cmp.Or(err, error(io.ErrUnexpectedEOF))
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
	add("-clients", c.Clients, c.Clients == 0)
	add("-procs", c.Processes, c.Processes == 0)
	add("-keys", c.Keys, c.Keys == 0)
	add("-crowd", c.Crowd, c.Crowd == "")
	if c.Once {
		args = append(args, "-once")
	}
	return args
}
