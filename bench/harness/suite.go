package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/test/realredis"
)

// Suite is sections that are measured in one run.
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
	Shows []string // names of measures: the summary has one table each
}

// suiteDefaults are the flags of a suite that are not given.
var suiteDefaults = []string{"-rounds", "3", "-d", "1s", "-warmup", "300ms"}

func (s Suite) names() []string {
	names := make([]string, len(s.Sections))
	for i, section := range s.Sections {
		names[i] = section.Name
	}
	return names
}

// part is a section with its options, or with an error if they do not fit the given ones.
type part struct {
	Section
	opts Options
	err  error
}

// parts are the chosen sections.
func (p Program) parts(args []string, only []string) []part {
	given := slices.Clone(suiteDefaults)
	if len(p.Suite.Drivers) > 0 {
		given = append(given, "-driver", join(p.Suite.Drivers))
	}
	given = append(given, args...)
	var chosen []part
	for _, s := range p.Suite.Sections {
		if !slices.Contains(only, s.Name) && !slices.Contains(only, all) {
			continue
		}
		next := part{Section: s}
		next.opts, next.err = ParseOptions(append(slices.Clone(given), strings.Fields(s.Args)...), p, io.Discard)
		chosen = append(chosen, next)
	}
	return chosen
}

// suite measures section after section. Results are on disk before the next one begins.
func (p Program) suite(ctx context.Context, args []string, opts Options, out *output) error {
	parts := p.parts(args, opts.Suite)
	var cells int
	var estimate time.Duration
	for _, part := range parts {
		cells += len(part.opts.cells())
		estimate += part.opts.estimate()
	}
	out.progress("suite: %d sections, %d cells, about %v", len(parts), cells, estimate.Round(time.Second))
	var failed []error
	for i, part := range parts {
		err := part.err
		if err == nil {
			out.progress("suite: section %d of %d, %s, about %v", i+1, len(parts), part.Name, part.opts.estimate().Round(time.Second))
			err = p.bench(ctx, part.opts, part.Section, out)
		} else {
			out.begin(newHead(ctx, part.opts, nil, part.Section, nil))
		}
		switch {
		case errors.Is(err, realredis.ErrNoServer):
			out.progress("suite: %s: skipped: %v", part.Name, err)
		case err != nil:
			failed = append(failed, fmt.Errorf("section %s: %w", part.Name, err))
		}
		if err != nil {
			out.fail(err)
		}
		if err := out.pages(); err != nil {
			return err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failed...)
}
