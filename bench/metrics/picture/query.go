package main

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// scrape is the values of one moment, by the name of the series and its labels.
type scrape struct {
	at     time.Duration
	values map[string]float64
}

func read(text string, at time.Duration) scrape {
	s := scrape{at, map[string]float64{}}
	for line := range strings.Lines(text) {
		if i := strings.LastIndexByte(line, ' '); line[0] != '#' {
			s.values[line[:i]], _ = strconv.ParseFloat(strings.TrimSpace(line[i:]), 64)
		}
	}
	return s
}

// lookBack is how many scrapes a rate is over: [$__rate_interval].
const lookBack = 3

var (
	quantile = regexp.MustCompile(`^histogram_quantile\(([\d.]+), (.*)\)$`)
	sum      = regexp.MustCompile(`^(?:sum|max|count)(?: by \((\w+)\) )?\((?:(rate|increase)\()?(\w+)\{(.*?)\}(?:\[\$__rate_interval\]\))?( == 0)?\)( > 0)?$`)
	label    = regexp.MustCompile(`(\w+)=~?"([^"]*)"`)
)

// query evaluates the part of Prometheus's language that the dashboard uses, for one client. It returns values over
// time by those of the label that is summed by, NaN where there is none.
func query(expr string, all []scrape) (map[string][]float64, error) {
	if of, to, isRatio := strings.Cut(expr, " / "); isRatio {
		a, err := query(of, all)
		b, failed := query(to, all)
		if err != nil || failed != nil {
			return nil, fmt.Errorf("%q is not understood", expr)
		}
		for i := range a[""] {
			a[""][i] /= b[""][i]
		}
		return a, nil
	}
	if m := quantile.FindStringSubmatch(expr); m != nil {
		q, _ := strconv.ParseFloat(m[1], 64)
		buckets, err := query(m[2], all)
		return map[string][]float64{"": quantiles(q, buckets, len(all))}, err
	}
	m := sum.FindStringSubmatch(expr)
	if m == nil {
		return nil, fmt.Errorf("%q is not understood", expr)
	}
	out := map[string][]float64{}
	for i, now := range all {
		for series, v := range now.values {
			name, labels, _ := strings.Cut(series, "{")
			isOther := func(want []string) bool { // $job and $group are all
				return want[2][0] != '$' && valueOf(labels, want[1]) != want[2]
			}
			if name != m[3] || slices.ContainsFunc(label.FindAllStringSubmatch(m[4], -1), isOther) {
				continue
			}
			if before := all[max(0, i-lookBack)]; m[2] != "" {
				v -= before.values[series]
				if m[2] == "rate" {
					v /= max(every, now.at-before.at).Seconds()
				}
			}
			if m[5] != "" { // a count of the clients that show 0
				if v != 0 {
					continue
				}
				v = 1
			}
			by := valueOf(labels, m[1])
			if out[by] == nil {
				out[by] = slices.Repeat([]float64{math.NaN()}, len(all))
			}
			if at := &out[by][i]; math.IsNaN(*at) && (v > 0 || m[6] == "") {
				*at = v
			} else if v > 0 {
				*at += v
			}
		}
	}
	return out, nil
}

func valueOf(labels, name string) string {
	for _, l := range label.FindAllStringSubmatch(labels, -1) {
		if l[1] == name {
			return l[2]
		}
	}
	return ""
}

// quantiles interpolates in the buckets, as Prometheus does.
func quantiles(q float64, buckets map[string][]float64, n int) []float64 {
	bounds := map[float64][]float64{}
	for le, counts := range buckets {
		bound, _ := strconv.ParseFloat(le, 64)
		bounds[bound] = counts
	}
	out := slices.Repeat([]float64{math.NaN()}, n)
	for i := range out {
		low, below := 0.0, 0.0
		for _, bound := range sorted(bounds) {
			rank, c := q*bounds[math.Inf(1)][i], bounds[bound][i]
			if c >= rank && c > below {
				out[i] = low + (bound-low)*(rank-below)/(c-below)
				if math.IsInf(bound, 1) {
					out[i] = low
				}
				break
			}
			low, below = bound, c
		}
	}
	return out
}
