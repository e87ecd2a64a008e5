package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/realredis"
)

// Suite is everything that is worth knowing, in one go.
type Suite struct {
	// Drivers are those that run unless others are chosen.
	Drivers  []string
	Sections []Section
}

// Section is one part of a suite: a command line, and what is shown of it.
type Section struct {
	Name  string
	Title string
	Args  string   // flags, which win over those that were given
	Shows []string // names of measures: one table each
}

// suiteDefaults are the flags of a suite that are not given.
var suiteDefaults = []string{"-rounds", "3", "-d", "1s", "-warmup", "300ms"}

func (s Suite) names() []string {
	all := make([]string, len(s.Sections))
	for i, section := range s.Sections {
		all[i] = section.Name
	}
	return all
}

// part is a section that was measured.
type part struct {
	Section
	args []string
	opts Options
	took time.Duration
	run  *Run  // nil if nothing could be measured
	err  error // why not everything could
}

// skipped tells whether there was nothing to measure it on.
func (p part) skipped() bool { return errors.Is(p.err, realredis.ErrNoServer) }

// parts are the chosen sections with their options. A section that does not go
// with what was given has an error.
func (p Program) parts(args []string, only []string) []part {
	given := slices.Clone(suiteDefaults)
	if len(p.Suite.Drivers) > 0 {
		given = append(given, "-driver", join(p.Suite.Drivers))
	}
	given = append(given, args...)
	var all []part
	for _, s := range p.Suite.Sections {
		if len(only) > 0 && !slices.Contains(only, s.Name) {
			continue
		}
		next := part{Section: s, args: append(slices.Clone(given), strings.Fields(s.Args)...)}
		next.opts, next.err = ParseOptions(next.args, p, io.Discard)
		all = append(all, next)
	}
	return all
}

// What a cell takes beside its window and its warm-up: to connect, of which most
// libraries do much for each worker and node, and to end.
const (
	overhead  = 150 * time.Millisecond
	perWorker = 100 * time.Microsecond
)

// clientTime is what -client takes, more or less.
const clientTime = 75 * time.Second

// estimate says how long the options will take, more or less.
func (o Options) estimate() time.Duration {
	var all time.Duration
	for _, c := range o.cells() {
		each := o.Timing.Warmup + o.Timing.Window + overhead + perWorker*time.Duration(c.Concurrency*c.Nodes)
		if c.Fault != NoFault && c.Fault != Back {
			each += o.Timing.Warmup
		}
		all += each*time.Duration(len(o.Drivers)*o.Rounds) +
			c.RTT*time.Duration(c.Nodes*(pings+1)*o.Rounds)
	}
	if o.Client {
		all += clientTime
	}
	return all
}

// suite measures section after section. What is done is on disk before the next
// one begins.
func (p Program) suite(ctx context.Context, args []string, opts Options, stdout, stderr io.Writer) (err error) {
	if err := os.MkdirAll(opts.Suite, 0o755); err != nil {
		return err
	}
	results, err := os.Create(filepath.Join(opts.Suite, "results.jsonl"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, results.Close()) }()

	parts := p.parts(args, opts.Only)
	var cells int
	var estimate time.Duration
	for _, part := range parts {
		cells += len(part.opts.cells())
		estimate += part.opts.estimate()
	}
	fmt.Fprintf(stderr, "suite: %d sections, %d cells, about %v\n", len(parts), cells, estimate.Round(time.Second))

	var failed []error
	for i := range parts {
		part := &parts[i]
		if part.err == nil {
			fmt.Fprintf(stderr, "suite: section %d of %d, %s, about %v\n", i+1, len(parts), part.Name, part.opts.estimate().Round(time.Second))
			if p.Report != nil {
				part.opts.Report = filepath.Join(opts.Suite, part.Name)
			}
			start := time.Now()
			part.run, part.err = p.bench(ctx, part.opts, stdout, stderr)
			part.took = time.Since(start)
		}
		switch {
		case part.skipped():
			fmt.Fprintf(stderr, "suite: %s: skipped: %v\n", part.Name, part.err)
		case part.err != nil:
			fmt.Fprintf(stderr, "suite: %s: %v\n", part.Name, part.err)
			failed = append(failed, fmt.Errorf("section %s: %w", part.Name, part.err))
		}
		if err := part.write(results); err != nil {
			return err
		}
		if err := writeSummary(filepath.Join(opts.Suite, "summary.md"), parts[:i+1]); err != nil {
			return err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failed...)
}

// write writes what was measured, one object a line: the section first, then its
// results, each with the section's name.
func (p part) write(w io.Writer) error {
	out := json.NewEncoder(w)
	head := struct {
		Section string   `json:"section"`
		Args    []string `json:"args"`
		Machine string   `json:"machine,omitempty"`
		Servers string   `json:"servers,omitempty"`
		Commit  string   `json:"commit,omitempty"`
		Date    string   `json:"date,omitempty"`
		Took    float64  `json:"took_s"`
		Error   string   `json:"error,omitempty"`
	}{Section: p.Name, Args: p.args, Took: round(p.took.Seconds())}
	if p.err != nil {
		head.Error = p.err.Error()
	}
	if p.run == nil {
		return out.Encode(head)
	}
	head.Machine, head.Servers, head.Commit, head.Date = p.run.Machine, p.run.Servers, p.run.Commit, p.run.Date.Format(time.RFC3339)
	err := out.Encode(head)
	for _, g := range p.run.Groups {
		for _, row := range g.Rows {
			if row.Err != nil {
				err = errors.Join(err, out.Encode(map[string]any{
					"section": p.Name, "driver": row.Driver, "cell": g.Cell.title(p.opts), "error": row.Err.Error(),
				}))
				continue
			}
			err = errors.Join(err, out.Encode(struct {
				Section string `json:"section"`
				Result
			}{p.Name, row.Result}))
		}
	}
	for _, n := range p.run.Client {
		err = errors.Join(err, out.Encode(struct {
			Section string `json:"section"`
			Note    Note   `json:"note"`
		}{p.Name, n}))
	}
	return err
}
