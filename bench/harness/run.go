package harness

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"
)

// Run is everything that one run of a program has measured, and on what.
type Run struct {
	Machine string
	Servers string
	Commit  string
	Date    time.Time
	Options Options
	Notes   []string
	Groups  []Group
	Client  []Note // what -client has found
}

// Group is a cell, and how each driver did under it.
type Group struct {
	Cell Cell
	Rows []Row
}

// Row is one driver's line in a group: its result, or the reason why there is
// none.
type Row struct {
	Driver string
	// Weaker says how little a driver promises that promises less than a lock
	// on a majority, else it is empty.
	Weaker string
	Result Result
	Err    error
}

// newRun describes what is about to be measured.
func newRun(ctx context.Context, opts Options, s *site, notes []string) (*Run, error) {
	servers, err := describeServers(ctx, s.addrs, s.embedded)
	if err != nil {
		return nil, err
	}
	return &Run{
		Machine: describeMachine(),
		Servers: servers,
		Commit:  commit(ctx),
		Date:    time.Now().UTC(),
		Options: opts,
		Notes:   notes,
	}, nil
}

// Method says in one line how the figures came about.
func (r *Run) Method() string {
	o := r.Options
	return fmt.Sprintf("%v after %v of warm-up, medians of %d, TTL %v, keys of %s bytes",
		o.Timing.Window, o.Timing.Warmup, o.Rounds, o.TTL, join(o.KeyLen))
}

func (r *Run) printHead(w io.Writer) {
	fmt.Fprintf(w, "machine  %s\nservers  %s\ncommit   %s, %s\ncells    %s\n",
		r.Machine, r.Servers, r.Commit, r.Date.Format(time.DateTime), r.Method())
}

// printNotes prints what the figures have to be read with.
func (r *Run) printNotes(w io.Writer, drivers []Driver) {
	weaker := map[string][]string{}
	var order []string
	for _, d := range drivers {
		if why := weakness(d); why != "" {
			if weaker[why] == nil {
				order = append(order, why)
			}
			weaker[why] = append(weaker[why], d.Name())
		}
	}
	if len(order)+len(r.Notes) > 0 {
		fmt.Fprintln(w)
	}
	for _, why := range order {
		fmt.Fprintf(w, "* %s: %s\n", strings.Join(weaker[why], ", "), why)
	}
	for _, note := range r.Notes {
		fmt.Fprintf(w, "- %s\n", note)
	}
}

// failed tells whether something could not be measured. What happens to a
// driver while a node is unwell is a finding and no failure of the run.
func (r *Run) failed() error {
	for _, g := range r.Groups {
		for _, row := range g.Rows {
			if row.Err != nil && g.Cell.Fault == NoFault && !errors.Is(row.Err, ErrUnsupported) {
				return errors.New("not all cells could be measured")
			}
		}
	}
	return nil
}

var errInterrupted = errors.New("interrupted")

// measure measures all drivers under one load. They take turns, and each round
// begins with another one, so that what changes on the machine over time falls
// on all of them.
func (s *site) measure(ctx context.Context, opts Options, drivers []Driver, cell Cell, bar Progress) ([]Row, error) {
	rows := make([]Row, len(drivers))
	rounds := make([][]Result, len(drivers))
	runtime.GOMAXPROCS(cmp.Or(cell.Procs, defaultProcs))
	if err := s.prepare(cell, opts.Jitter); err != nil {
		return nil, err
	}
	for i, d := range drivers {
		rows[i] = Row{Driver: d.Name(), Weaker: weakness(d)}
	}
	for round := range opts.Rounds {
		trips, err := roundTrips(ctx, s.nodes(cell))
		if ctx.Err() != nil {
			return nil, errInterrupted
		}
		if err != nil {
			return nil, err
		}
		for turn := range drivers {
			i := (round + turn) % len(drivers)
			bar.Step(cell.title(opts) + ": " + drivers[i].Name())
			if ctx.Err() != nil {
				return nil, errInterrupted
			}
			if rows[i].Err != nil {
				continue
			}
			cfg := Config{
				Nodes:       s.nodes(cell),
				Embedded:    s.embedded,
				TTL:         opts.TTL,
				Scenario:    cell.Scenario,
				Concurrency: cell.Concurrency,
				Keys:        keys(cell.Scenario, cell.Concurrency, cell.KeyLen),
			}
			timing := opts.Timing
			timing.Exact = len(opts.Faults) > 0
			timing.Disturbance = s.disturbance(cell, opts.Jitter)
			r, err := Measure(ctx, drivers[i], cfg, timing)
			r.describe(cell, opts)
			r.PingP50, r.PingP99 = micros(trips.Quantile(0.50)), micros(trips.Quantile(0.99))
			rounds[i] = append(rounds[i], r)
			rows[i].Err = err
		}
	}
	for i := range rows {
		if rows[i].Err == nil {
			rows[i].Result = Median(rounds[i])
		}
	}
	return rows, nil
}

// defaultProcs is GOMAXPROCS as the program found it.
var defaultProcs = runtime.GOMAXPROCS(0)

// printJSON prints one object a line, and on the other stream what has none.
func printJSON(stdout, stderr io.Writer, rows []Row) error {
	out := json.NewEncoder(stdout)
	for _, r := range rows {
		if r.Err != nil {
			fmt.Fprintln(stderr, "bench:", r.Err)
			continue
		}
		if err := out.Encode(r.Result); err != nil {
			return err
		}
	}
	return nil
}
