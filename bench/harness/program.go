package harness

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"

	"github.com/redlock-go/redlock/bench/proxy"
)

// Program is a whole benchmark program around some drivers.
type Program struct {
	// Drivers are all there are to choose from.
	Drivers []Driver
	// Chosen names those that run by default.
	Chosen []string
	// Real makes real servers the default in place of embedded masters.
	Real bool
	// Notes are what a reader has to know to judge the figures fairly. They
	// are printed below the tables.
	Notes []string
	// Progress makes a display of how far the program is, of a number of steps;
	// nil for none.
	Progress func(w io.Writer, steps int) Progress
	// Report writes what was measured to a directory, for -report; nil if
	// there is no such thing.
	Report func(dir string, run *Run) error
	// Growth measures, for -client, what only makes sense for one client at a
	// time; nil if there is no such thing.
	Growth func(ctx context.Context, nodes []string, note func(Note)) error
	// Suite is what -suite goes through; without sections there is no such thing.
	Suite Suite
}

// Main reads the command line, measures, prints, and returns the exit code: 2
// for a bad command line, 1 for anything else that failed.
func (p Program) Main(args []string, stdout, stderr io.Writer) int {
	ServeIfMasters()
	proxy.ServeIfProxy()
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
	if opts.Suite != "" {
		err = p.suite(ctx, args, opts, stdout, stderr)
	} else {
		_, err = p.bench(ctx, opts, stdout, stderr)
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	return 0
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

// bench prepares servers and profile, and measures what the options say. With
// an error too it returns what was measured until then, if anything.
func (p Program) bench(ctx context.Context, opts Options, stdout, stderr io.Writer) (run *Run, err error) {
	s, err := open(ctx, opts)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if run, err = newRun(ctx, opts, s, p.Notes); err != nil {
		return nil, err
	}
	if opts.CPUProfile != "" {
		stop, err := profile(opts.CPUProfile)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	if !opts.JSON {
		run.printHead(stdout)
	}
	if err := p.measure(ctx, s, run, stdout, stderr); err != nil {
		return run, err
	}
	if opts.Report != "" {
		if err := p.Report(opts.Report, run); err != nil {
			return run, fmt.Errorf("report: %w", err)
		}
	}
	return run, run.failed()
}

// measure goes through the cells and what else is asked for, and prints it.
func (p Program) measure(ctx context.Context, s *site, run *Run, stdout, stderr io.Writer) error {
	opts := run.Options
	cells, drivers := opts.cells(), p.pick(opts.Drivers)
	bar := p.newProgress(stderr, len(cells)*len(drivers)*opts.Rounds)
	defer bar.Clear()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, cell := range cells {
		rows, err := s.measure(ctx, opts, drivers, cell, bar)
		if err != nil {
			return err
		}
		bar.Clear()
		group := Group{Cell: cell, Rows: rows}
		run.Groups = append(run.Groups, group)
		if opts.JSON {
			err = printJSON(stdout, stderr, rows)
		} else {
			printGroup(stdout, cell.title(opts), group, opts.view(cell))
		}
		if err != nil {
			return err
		}
	}
	if !opts.JSON && len(cells) > 0 {
		run.printNotes(stdout, drivers)
	}
	if !opts.Client {
		return nil
	}
	runtime.GOMAXPROCS(defaultProcs)
	return p.Growth(ctx, s.addrs[:min(usual.Nodes, len(s.addrs))], func(n Note) {
		if opts.JSON {
			_ = json.NewEncoder(stdout).Encode(n)
		} else {
			printNote(stdout, n, run.Client)
		}
		run.Client = append(run.Client, n)
	})
}

// profile starts a CPU profile, and returns what ends it.
func profile(name string) (func() error, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}
