package checker

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/bench/network/history"
)

// Finding is a rule that was broken.
type Finding struct {
	Rule, Library string
	At            float64 // seconds from the start
	Fault         string  // to which it is put down, if that was alone
	Text          string
}

// Verdict is what the checker says of a run.
type Verdict struct {
	Setup      history.Setup
	Violations []Finding
	Counts     map[string]int
	Figures    map[string]float64 // the largest of the run
	Results    map[string]int     // of calls, by library and API
	Faulty     []Figures
	Attempts   struct{ Healthy, Faulty []float64 } // on free keys, in milliseconds
}

// file is where a verdict is kept.
const file = "verdict.json"

// Save writes the verdict to the folder of its run.
func (v *Verdict) Save(dir string) error {
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, file), text, 0o644)
}

// Load reads the verdicts of all runs in a folder.
func Load(dir string) (all []*Verdict, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*", file))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		v := &Verdict{}
		if err := json.Unmarshal(text, v); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, v)
	}
	return all, nil
}

// Broken is how often each rule was broken.
func (v *Verdict) Broken() map[string]int {
	n := map[string]int{}
	for _, f := range v.Violations {
		n[f.Rule]++
	}
	return n
}

// max keeps the largest value of a figure, in milliseconds.
func (v *Verdict) max(name string, d time.Duration) { v.Figures[name] = max(v.Figures[name], ms(d)) }

func ms(d time.Duration) float64 { return float64(d.Round(10*time.Microsecond)) / 1e6 }

// Quantile is the nearest-rank quantile.
func Quantile(list []float64, q float64) float64 {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// shown is how many violations of a rule are printed.
const shown = 5

// String is the verdict for a terminal.
func (v *Verdict) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d violations\n", v.Setup.Name, len(v.Violations))
	broken := v.Broken()
	for _, rule := range slices.Sorted(maps.Keys(broken)) {
		fmt.Fprintf(&b, "  %s: %d\n", rule, broken[rule])
		n := 0
		for _, f := range v.Violations {
			if f.Rule == rule && n < shown {
				n++
				fmt.Fprintf(&b, "    %.3f s, %s: %s\n", f.At, f.Library, f.Text)
			}
		}
	}
	line := func(values map[string]float64) {
		var all []string
		for _, k := range slices.Sorted(maps.Keys(values)) {
			all = append(all, fmt.Sprintf("%s %.4g", k, values[k]))
		}
		fmt.Fprintf(&b, "  %s\n", strings.Join(all, "; "))
	}
	line(floats(v.Counts))
	line(v.Figures)
	line(floats(v.Results))
	for _, f := range v.Faulty {
		fmt.Fprintf(&b, "  %-24s %5.0f ms: without a grant %s, after its end %s; key wanted %s; no quorum %d, dials %d\n", f.Fault, f.Length, Three(f.Without), Three(f.After), Three(f.Wanted), f.NoQuorum, f.Dials)
	}
	return b.String()
}

func floats(values map[string]int) map[string]float64 {
	all := map[string]float64{}
	for k, n := range values {
		all[k] = float64(n)
	}
	return all
}

// Three are p50, p99 and the largest.
func Three(list []float64) string {
	if len(list) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f/%.0f/%.0f", Quantile(list, .5), Quantile(list, .99), slices.Max(list))
}
