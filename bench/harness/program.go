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
	"runtime/pprof"

	"github.com/redlock-go/redlock/bench/proxy"
	"github.com/redlock-go/redlock/bench/result"
)

// Program is a whole benchmark program around some drivers.
type Program struct {
	// Drivers are all there are to choose from.
	Drivers []Driver
	// Chosen names those that run by default.
	Chosen []string
	// Real makes real servers the default in place of embedded masters.
	Real bool
	// Notes tell a reader how to judge the figures fairly.
	Notes []string
	// Growth measures what only makes sense for one client at a time, for the
	// section "client" of a suite.
	Growth func(ctx context.Context, nodes []string, note func(result.Note)) error
	// Suite has the sections for -suite; without sections there is no such flag.
	Suite Suite
}

// Main reads the command line, measures, has the results shown, and returns the
// exit code: 2 for a bad command line, 1 for anything else that failed.
func (p Program) Main(args []string, stdout, stderr io.Writer) int {
	p.ServeIfContender()
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
	err = p.bench(ctx, opts, Section{}, out)
	return errors.Join(err, out.pages())
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

// bench prepares servers and profile, and measures what the options say.
func (p Program) bench(ctx context.Context, opts Options, section Section, out *output) (err error) {
	s, err := open(opts)
	if err != nil {
		out.begin(newHead(ctx, opts, nil, section, nil))
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if opts.CPUProfile != "" {
		stop, err := profile(opts.CPUProfile)
		if err != nil {
			return fmt.Errorf("-cpuprofile: %w", err)
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	if err := s.look(ctx); err != nil {
		return err
	}
	out.begin(newHead(ctx, opts, s.servers, section, p.Notes))

	cells, drivers := opts.cells(), p.pick(opts.Drivers)
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
	if opts.client {
		runtime.GOMAXPROCS(defaultProcs)
		return p.Growth(ctx, s.addrs[:min(5, len(s.addrs))], out.note)
	}
	// What happens to a driver while a node is away or unwell is a finding and no
	// failure of the run, as long as there are findings.
	if bad > 0 || good == 0 {
		return errors.New("not all cells could be measured")
	}
	return nil
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
