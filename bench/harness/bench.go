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
	"runtime/pprof"
	"time"
)

// Main is a whole benchmark program around some drivers: it reads the command
// line, measures, prints, and returns the exit code (2 for a bad command line,
// 1 for anything else that failed). The drivers named in chosen run by default.
func Main(args []string, stdout, stderr io.Writer, drivers []Driver, chosen ...string) int {
	ServeIfMasters()
	byName := make(map[string]Driver, len(drivers))
	names := make([]string, len(drivers))
	for i, d := range drivers {
		names[i] = d.Name()
		byName[names[i]] = d
	}
	opts, err := ParseOptions(args, names, chosen, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "bench: %v\nbench: -h lists the flags\n", err)
		return 2
	}
	picked := make([]Driver, len(opts.Drivers))
	for i, name := range opts.Drivers {
		picked[i] = byName[name]
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := bench(ctx, opts, picked, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	return 0
}

// bench prepares masters and profile, and runs everything.
func bench(ctx context.Context, opts Options, drivers []Driver, stdout, stderr io.Writer) (err error) {
	nodes := opts.Nodes
	if len(nodes) == 0 {
		masters, err := StartMasters(opts.Masters)
		if err != nil {
			return err
		}
		defer masters.Close()
		nodes = masters.Addrs
	}
	servers, err := describeServers(ctx, nodes, len(opts.Nodes) == 0)
	if err != nil {
		return err
	}
	if opts.CPUProfile != "" {
		f, err := os.Create(opts.CPUProfile)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	if !opts.JSON {
		fmt.Fprintf(stdout, "machine  %s\nservers  %s\ncommit   %s, %s\ncells    %v after %v of warm-up, medians of %d, TTL %v, keys of %d bytes\n",
			describeMachine(), servers, commit(ctx), time.Now().UTC().Format(time.DateTime),
			opts.Timing.Window, opts.Timing.Warmup, opts.Rounds, opts.TTL, opts.KeyLen)
	}

	var failed error
	for _, scenario := range opts.Scenarios {
		for _, c := range opts.Concurrency {
			cfg := Config{Nodes: nodes, TTL: opts.TTL, Scenario: scenario, Concurrency: c}
			rows := group(ctx, opts, drivers, cfg)
			for _, r := range rows {
				if r.err != nil && !errors.Is(r.err, ErrUnsupported) {
					failed = errors.New("not all cells could be measured")
				}
			}
			if ctx.Err() != nil {
				return errors.New("interrupted")
			}
			if opts.JSON {
				err = printJSON(stdout, stderr, rows)
			} else {
				printGroup(stdout, scenario, c, rows, opts.Rounds > 1)
			}
			if err != nil {
				return err
			}
		}
	}
	return failed
}

// group measures all drivers under one load. They take turns, and each round
// begins with another one, so that what changes on the machine over time falls
// on all of them.
func group(ctx context.Context, opts Options, drivers []Driver, cfg Config) []row {
	rows := make([]row, len(drivers))
	rounds := make([][]Result, len(drivers))
	for round := range opts.Rounds {
		for turn := range drivers {
			i := (round + turn) % len(drivers)
			if rows[i].err != nil || ctx.Err() != nil {
				continue
			}
			cfg.Keys = keys(cfg.Scenario, cfg.Concurrency, opts.KeyLen)
			r, err := Measure(ctx, drivers[i], cfg, opts.Timing)
			rounds[i] = append(rounds[i], r)
			rows[i].err = err
		}
	}
	for i, d := range drivers {
		rows[i].driver = d.Name()
		if rows[i].err == nil && len(rounds[i]) > 0 {
			rows[i].result = Median(rounds[i])
		}
	}
	return rows
}

// printJSON prints one object a line, and on the other stream what has none.
func printJSON(stdout, stderr io.Writer, rows []row) error {
	out := json.NewEncoder(stdout)
	for _, r := range rows {
		if r.err != nil {
			fmt.Fprintln(stderr, "bench:", r.err)
			continue
		}
		if err := out.Encode(r.result); err != nil {
			return err
		}
	}
	return nil
}
