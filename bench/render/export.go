package render

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/bench/result"
)

// exported are the figures that other tools are given, by benchstat's units.
var exported = []struct {
	unit string
	of   func(*result.Figures) float64
}{
	{"pairs/s", func(f *result.Figures) float64 { return f.PairsPerSec }},
	{"p50-ns", func(f *result.Figures) float64 { return 1e3 * f.P50 }},
	{"p99-ns", func(f *result.Figures) float64 { return 1e3 * f.P99 }},
	{"p999-ns", func(f *result.Figures) float64 { return 1e3 * f.P999 }},
	{"max-ns", func(f *result.Figures) float64 { return 1e3 * f.Max }},
	{"cpu-ns/op", func(f *result.Figures) float64 { return 1e3 * f.CPUPerPair }},
	{"allocs/op", func(f *result.Figures) float64 { return f.AllocsPerPair }},
	{"errors", func(f *result.Figures) float64 { return f.Errors }},
	{"others-share", func(f *result.Figures) float64 { return f.Others }},
}

// parts names a cell and a driver as benchstat's keys.
func parts(r *result.Result) (all [][2]string) {
	c := r.Cell
	for _, p := range []struct {
		key   string
		value any
		usual bool
	}{
		{"scenario", c.Scenario, false}, {"driver", r.Driver, false}, {"n", c.Nodes, false}, {"c", c.Concurrency, false},
		{"procs", c.Processes, c.Processes == 0}, {"keys", c.Keys, c.Keys == 0}, {"hold", c.Hold, c.Hold == 0}, {"rate", c.Rate, c.Rate == 0}, {"clients", c.Clients, c.Clients == 0},
		{"rtt", c.RTT, c.RTT == 0}, {"jitter", c.Jitter, c.Jitter == 0}, {"fault", c.Fault, c.Fault == result.NoFault || c.Fault == ""},
		{"keylen", c.KeyLen, c.KeyLen == 0}, {"gomaxprocs", c.Procs, c.Procs == 0}, {"ttl", c.TTL, c.TTL == 0},
		{"crowd", c.Crowd, c.Crowd == ""}, {"beside", c.Beside, c.Beside == ""},
	} {
		if !p.usual {
			all = append(all, [2]string{p.key, fmt.Sprint(p.value)})
		}
	}
	return all
}

// Benchstat writes results in the format of Go's benchmarks, each round a line: benchstat -col /driver shows drivers side by side.
func Benchstat(w io.Writer, lines []result.Line) error {
	var err error
	for _, l := range lines {
		if l.Head != nil {
			_, err = fmt.Fprintf(w, "commit: %s\nsection: %s\n", l.Head.Commit, strings.Join(strings.Fields(l.Head.Section), "-"))
		}
		if l.Result == nil || l.Result.Error != "" || l.Result.Pairs == 0 || err != nil {
			continue
		}
		name := "BenchmarkPair"
		for _, p := range parts(l.Result) {
			name += "/" + p[0] + "=" + p[1]
		}
		line := fmt.Sprintf("%s %.0f", name, l.Result.Pairs)
		for _, e := range exported {
			line += fmt.Sprintf(" %s %s", strconv.FormatFloat(e.of(&l.Result.Figures), 'f', -1, 64), e.unit)
		}
		_, err = fmt.Fprintln(w, line)
	}
	return err
}
