package harness

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"time"

	"github.com/redlock-go/redlock/bench/place"
	"github.com/redlock-go/redlock/bench/proxy"
	"github.com/redlock-go/redlock/bench/result"
)

// Program is a whole benchmark program around some drivers.
type Program struct {
	// Drivers are all there are to choose from.
	Drivers []Driver
	// Chosen names those that run by default.
	Chosen []string
	// Real is for drivers that need real servers: then there are no embedded masters.
	Real bool
	// Notes are what a reader has to know in order to compare.
	Notes []string
	// Source is the program's own package in its repository, "./bench", for -against; without it there is no such
	// flag.
	Source string
	// turns has each turn of a driver in a process of its own, where nothing is left of the turns before.
	turns bool
	// Suite has the sections for -suite; without sections there is no such flag.
	Suite Suite
}

// Execute is the whole of a program: it gives itself the clients' half of the processors, does what the command line
// says, and exits.
func (p Program) Execute() {
	p.serve()
	p.turns = os.Getenv(turnEnv) == ""
	opts, err := ParseOptions(os.Args[1:], p, io.Discard)
	if err == nil && len(opts.Render) == 0 {
		if err := place.Choose(opts.Together); err != nil {
			fmt.Fprintln(os.Stderr, "bench: processors apart:", err)
		}
	}
	os.Exit(p.Main(os.Args[1:], os.Stdout, os.Stderr))
}

// serve is another process of the benchmark, if this one was started for that.
func (p Program) serve() {
	p.ServeIfContender()
	ServeIfMasters()
	proxy.ServeIfProxy()
}

// Main reads the command line, measures, has the results shown, and returns the
// exit code: 2 for a bad command line, 1 for anything else that failed.
func (p Program) Main(args []string, stdout, stderr io.Writer) int {
	opts, err := ParseOptions(args, p, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "bench: %v\nbench: -h lists the flags\n", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := p.run(ctx, args, opts, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	return 0
}

func (p Program) run(ctx context.Context, args []string, opts Options, stdout, stderr io.Writer) (err error) {
	out, err := newOutput(opts, stdout, stderr)
	if err != nil {
		return fmt.Errorf("-o %s: %w", opts.Out, err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	switch {
	case len(opts.Render) > 0:
		return out.load(opts.Render)
	case len(opts.Suite) > 0:
		return p.suite(ctx, args, opts, out)
	}
	if opts.Against != "" {
		opts, err = ParseOptions(append(slices.Clone(againstDefaults), args...), p, io.Discard)
		if err != nil {
			return err
		}
		out.progress("against: %d cells, %d drivers, %d rounds or more: at least %v, and two builds", len(opts.cells()), len(opts.Drivers), opts.Rounds, (2 * opts.estimate()).Round(time.Second))
		return errors.Join(p.against(ctx, opts, out), out.pages())
	}
	out.progress("bench: %d cells, %d drivers, %d rounds: about %v", len(opts.cells()), len(opts.Drivers), opts.Rounds, opts.estimate().Round(time.Second))
	stop, err := profile(opts.CPUProfile)
	if err != nil {
		return fmt.Errorf("-cpuprofile: %w", err)
	}
	err = p.bench(ctx, opts, Section{}, out)
	return errors.Join(err, stop(), out.pages())
}

func (p Program) names() []string {
	names := make([]string, len(p.Drivers))
	for i, d := range p.Drivers {
		names[i] = d.Name()
	}
	return names
}

// pick returns the drivers that the options name.
func (p Program) pick(names []string) []Driver {
	var picked []Driver
	for _, name := range names {
		for _, d := range p.Drivers {
			if d.Name() == name {
				picked = append(picked, d)
			}
		}
	}
	return picked
}

// bench prepares the servers, and measures what the options ask for.
func (p Program) bench(ctx context.Context, opts Options, section Section, out *output) (err error) {
	s, err := open(opts)
	if err != nil {
		out.begin(newHead(ctx, opts, nil, section, nil))
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.look(ctx); err != nil {
		return err
	}
	out.begin(newHead(ctx, opts, s.servers, section, p.Notes))

	cells, drivers := opts.cells(), p.pick(opts.Drivers)
	if self, err := os.Executable(); err == nil && p.turns && opts.CPUProfile == "" && !opts.unwell() {
		opts.own = &side{binary: self}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var good, bad int
	for _, cell := range cells {
		results, err := s.measure(ctx, opts, drivers, cell, out)
		if err != nil {
			return err
		}
		out.group(len(results))
		for _, r := range results {
			switch {
			case r.Error == "":
				good++
			case r.Unsafe:
				return errOverlap
			case !r.Lacks && cell.Fault == result.NoFault && len(s.away) == 0:
				bad++
			}
		}
	}
	if len(cells) > 0 {
		out.notes()
	}
	// A driver that fails while a node is down or faulty is a finding, not a failure of the run.
	if bad > 0 || good == 0 {
		return errors.New("not all cells could be measured")
	}
	return nil
}
