package result

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// Run is a head, and everything that belongs to it.
type Run struct {
	Head
	Groups []*Group
	Failed []string
}

// Group is a cell, and how each driver did in it.
type Group struct {
	Cell
	Rows []*Row
}

// Row is one driver's line in a group: the medians over its rounds, the lowest
// and the highest of each figure, and the sum of the errors.
type Row struct {
	Driver, Weaker    string
	Error, FirstError string
	Lacks             bool
	Figures
	Low, High Figures
	Rounds    []*Result // in the order in which they were measured
}

// Row is a driver's row, or an empty one.
func (g *Group) Row(driver string) *Row {
	for _, r := range g.Rows {
		if r.Driver == driver {
			return r
		}
	}
	return &Row{Driver: driver, Error: "not measured"}
}

// Load reads files of results. The drivers of several are told apart by the names of the files.
func Load(names []string) (all []Line, err error) {
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		label := ""
		if len(names) > 1 {
			label = filepath.Base(name[:len(name)-len(filepath.Ext(name))])
		}
		lines, err := Read(f, label)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, lines...)
	}
	return all, nil
}

// Read reads a file of results. It appends the label, if any, to the name of each driver.
func Read(in io.Reader, label string) ([]Line, error) {
	var all []Line
	for d := json.NewDecoder(in); ; {
		var l Line
		switch err := d.Decode(&l); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("line %d: %w", len(all)+1, err)
		case len(all) == 0 && l.Head == nil:
			return nil, errors.New("line 1: not a result of this program")
		case l.Result != nil && label != "":
			l.Result.Driver += " (" + label + ")"
		case l.Head != nil && label != "":
			l.Head.Commit += " (" + label + ")"
		}
		all = append(all, l)
	}
}

// Collect sorts lines into runs. Two heads of the same section are one run.
func Collect(lines []Line) []*Run {
	var all []*Run
	var run *Run
	for _, l := range lines {
		switch {
		case l.Head != nil:
			i := slices.IndexFunc(all, func(r *Run) bool { return r.Section == l.Head.Section && r.Args == l.Head.Args })
			if i < 0 {
				i = len(all)
				all = append(all, &Run{Head: *l.Head})
			} else if !slices.Contains(strings.Split(all[i].Commit, ", "), l.Head.Commit) {
				all[i].Commit += ", " + l.Head.Commit
			}
			run = all[i]
		case l.Result != nil:
			run.row(l.Result).Rounds = append(run.row(l.Result).Rounds, l.Result)
		case l.Failed != "":
			run.Failed = append(run.Failed, l.Failed)
		}
	}
	for _, run := range all {
		for _, g := range run.Groups {
			for _, r := range g.Rows {
				r.sum()
				run.Rounds = max(run.Rounds, len(r.Rounds))
			}
		}
	}
	return all
}

// row returns the row of a result, and makes it if there is none.
func (run *Run) row(r *Result) *Row {
	i := slices.IndexFunc(run.Groups, func(g *Group) bool { return g.Cell == r.Cell })
	if i < 0 {
		i = len(run.Groups)
		run.Groups = append(run.Groups, &Group{Cell: r.Cell})
	}
	g := run.Groups[i]
	at := slices.IndexFunc(g.Rows, func(row *Row) bool { return row.Driver == r.Driver })
	if at < 0 {
		at = len(g.Rows)
		g.Rows = append(g.Rows, &Row{Driver: r.Driver, Weaker: r.Weaker})
	}
	return g.Rows[at]
}

// sum computes the figures of a row from its rounds. If one round has none, the row has none.
func (r *Row) sum() {
	var errs float64
	for _, one := range r.Rounds {
		r.Error = cmp.Or(r.Error, one.Error)
		r.FirstError = cmp.Or(r.FirstError, one.FirstError)
		r.Lacks = r.Lacks || one.Lacks
		errs += one.Errors
	}
	if r.Error != "" {
		return
	}
	mid, low, high := r.Figures.fields(), r.Low.fields(), r.High.fields()
	for i := range mid {
		*low[i], *mid[i], *high[i] = spread(r.Rounds, func(one *Result) float64 { return *one.Figures.fields()[i] })
	}
	r.Errors = errs // a median would hide a rare one
}

// fields are all figures, in order.
func (f *Figures) fields() []*float64 {
	v := reflect.ValueOf(f).Elem()
	all := make([]*float64, v.NumField())
	for i := range all {
		all[i] = v.Field(i).Addr().Interface().(*float64)
	}
	return all
}

// spread returns the lowest, the median and the highest of a figure over the rounds.
func spread(rounds []*Result, figure func(*Result) float64) (low, mid, high float64) {
	all := make([]float64, len(rounds))
	for i, r := range rounds {
		all[i] = figure(r)
	}
	slices.Sort(all)
	return all[0], Median(all), all[len(all)-1]
}
