package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/build"
	"github.com/redlock-go/redlock/internal/server/frontend"
	"github.com/redlock-go/redlock/internal/server/grants"
)

// The page looks at the client every sampleEvery, and shows its last maxSamples and maxTroubles.
const (
	sampleEvery = 5 * time.Second
	maxSamples  = 120 // ten minutes
	maxTroubles = 12
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{"short": short}).Parse(pageText))

// page is an operator's view of a front end: its nodes, its locks, and its last minutes. It is one document, loads
// nothing from elsewhere, and shows no key unless asked to (/?keys).
type page struct {
	mu       sync.Mutex
	samples  []sample
	troubles []trouble
}

// sample holds the counts at one moment.
type sample struct {
	at                                     time.Time
	granted, taken, failed, commands, wait float64
}

// trouble is an error, and the number of times it came in a row. Errors with different durations alone are one.
type trouble struct {
	At                time.Time
	What, Key, Reason string
	Times             int
}

var durations = regexp.MustCompile(`\b[0-9.]+(h|m|s|ms|µs)[0-9hms.]*\b`)

// hooks are the client's hooks: they record troubles for the operator.
func (p *page) hooks() redlock.Hooks {
	return redlock.Hooks{
		Attempt: func(a redlock.Attempt) {
			if errors.Is(a.Err, redlock.ErrNoQuorum) || errors.Is(a.Err, redlock.ErrExpired) {
				p.record(a.Kind.String(), a.Key, a.Err)
			}
		},
		LockLost:        func(key string, err error) { p.record("lock lost", key, err) },
		NodeDown:        func(n redlock.Node) { p.record("node down", "", n.Err) },
		NodeQuarantined: func(n redlock.Node) { p.record("no vote: "+n.Addr, "", n.NoVote) },
	}
}

func (p *page) record(what, key string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := trouble{At: time.Now(), What: what, Key: key, Reason: fmt.Sprint(err), Times: 1}
	alike := func(t trouble) string { return t.What + durations.ReplaceAllString(t.Reason, "") }
	if n := len(p.troubles); n > 0 && alike(p.troubles[n-1]) == alike(t) {
		t.Times += p.troubles[n-1].Times
		p.troubles = p.troubles[:n-1]
	}
	p.troubles = append(p.troubles, t)
	p.troubles = slices.Delete(p.troubles, 0, max(0, len(p.troubles)-maxTroubles))
}

// sample adds the present counts.
func (p *page) sample(now time.Time, s redlock.Stats, commands, failed uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.samples = append(p.samples, sample{
		at: now, granted: float64(s.Acquire.Won + s.HandedOver), taken: float64(s.Acquire.Denied),
		failed: float64(failed), commands: float64(commands), wait: float64(s.InLine),
	})
	p.samples = slices.Delete(p.samples, 0, max(0, len(p.samples)-maxSamples))
}

// watch samples until ctx ends.
func (p *page) watch(ctx context.Context, client *redlock.Client, front *frontend.Server) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		own, wire := front.Stats()
		p.sample(time.Now(), client.Stats(), wire.Commands.Load(), own.NoQuorum.Load()) // once for each reply: the library counts attempts
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// plot is a small picture of one value over time, the newest at its right.
type plot struct{ Name, Now, Top, Points string }

// newPlot draws a value of the samples, or the growth of one.
func newPlot(name string, samples []sample, isRate bool, value func(sample) float64) plot {
	var values []float64
	for i, s := range samples {
		switch {
		case !isRate:
			values = append(values, value(s))
		case i > 0:
			values = append(values, (value(s)-value(samples[i-1]))/max(s.at.Sub(samples[i-1].at).Seconds(), 0.001))
		}
	}
	if len(values) == 0 {
		return plot{Name: name, Now: "–"}
	}
	top := max(slices.Max(values), 1)
	var points strings.Builder
	for i, v := range values {
		x := 240 * float64(maxSamples-len(values)+i) / (maxSamples - 1)
		fmt.Fprintf(&points, "%.1f,%.1f ", x, 1+46*(1-v/top))
	}
	return plot{name, number(values[len(values)-1]), number(slices.Max(values)), points.String()}
}

// number writes numbers in the forms 12,345 and 0.4.
func number(v float64) string {
	if v < 9.95 && v != float64(int(v)) {
		return fmt.Sprintf("%.1f", v)
	}
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func short(d time.Duration) string {
	switch {
	case d == 0:
		return "–"
	case d < time.Second:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Second).String()
}

func (o *operators) show(w http.ResponseWriter, r *http.Request) {
	stats := o.client.Stats()
	view := struct {
		At       time.Time
		Process  string
		Refresh  int
		NotReady string
		Up       int
		Nodes    []redlock.Node
		Counts   []struct{ Name, Help, Value string }
		Plots    []plot
		Troubles []trouble
		Held     []grants.HeldLock
		Keys     bool
	}{At: time.Now(), Process: fmt.Sprintf("%s redlock %s, up for %s", o.name, build.Read().Version, short(time.Since(o.began))), NotReady: o.notReady(), Refresh: int(sampleEvery.Seconds()), Nodes: stats.Nodes, Keys: r.URL.Query().Has("keys")}
	for _, n := range stats.Nodes {
		if n.Up && n.NoVote == nil {
			view.Up++
		}
	}
	view.Counts = []struct{ Name, Help, Value string }{
		{"held", "locks with validity left", number(float64(stats.Held))},
		{"kept", "of these, extended in the background", number(float64(stats.KeptAlive))},
		{"waited for", "callers in line for a lock", number(float64(stats.InLine))},
		{"lost", "while they were kept alive, since the start", number(float64(stats.Lost))},
	}
	if view.Keys && o.front != nil {
		view.Held = o.front.Held()
	}
	o.mu.Lock()
	view.Plots = []plot{
		newPlot("granted, per second", o.samples, true, func(s sample) float64 { return s.granted }),
		newPlot("taken, per second", o.samples, true, func(s sample) float64 { return s.taken }),
		newPlot("failed, per second", o.samples, true, func(s sample) float64 { return s.failed }),
		newPlot("callers in line", o.samples, false, func(s sample) float64 { return s.wait }),
		newPlot("commands, per second", o.samples, true, func(s sample) float64 { return s.commands }),
	}
	view.Troubles = slices.Clone(o.troubles)
	o.mu.Unlock()
	slices.Reverse(view.Troubles)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	w.Header().Set("Cache-Control", "no-store")
	_ = pageTemplate.Execute(w, view)
}
