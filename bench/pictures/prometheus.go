package main

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// every is the time between two scrapes, and between two points of a curve.
const every = 500 * time.Millisecond

// recording is what was scraped: the points of each series, by its name and labels as the text has them.
type recording struct {
	series map[string][]promql.FPoint
	now    time.Duration // of the next
}

// scrape adds a text of metrics.
func (r *recording) scrape(text string) {
	for line := range strings.Lines(text) {
		if i := strings.LastIndexByte(line, ' '); line[0] != '#' {
			v, _ := strconv.ParseFloat(strings.TrimSpace(line[i:]), 64)
			r.series[line[:i]] = append(r.series[line[:i]], promql.FPoint{T: r.now.Milliseconds(), F: v})
		}
	}
	r.now += every
}

// choose returns the series that match.
func (r *recording) choose(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var all seriesSet
	for name, points := range r.series {
		metric, err := parser.NewParser(parser.Options{}).ParseMetric(name)
		if err != nil {
			return storage.ErrSeriesSet(err)
		}
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(metric.Get(m.Name)) }) {
			all.rest = append(all.rest, promql.Series{Metric: metric, Floats: points})
		}
	}
	return &all
}

// seriesSet is how Prometheus reads series.
type seriesSet struct{ this, rest []promql.Series }

func (s *seriesSet) Next() bool {
	n := min(1, len(s.rest))
	s.this, s.rest = s.rest[:n], s.rest[n:]
	return n > 0
}
func (s *seriesSet) At() storage.Series                { return promql.NewStorageSeries(s.this[0]) }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// query has Prometheus evaluate an expression of the dashboard, for all that its variables can be.
func (r *recording) query(expr string) (promql.Matrix, error) {
	expr = strings.NewReplacer("$__rate_interval", "2s", "$job", ".*", "$group", ".*").Replace(expr)
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: every})
	storage := &storage.MockQueryable{MockQuerier: &storage.MockQuerier{SelectMockFunction: r.choose}}
	q, err := engine.NewRangeQuery(context.Background(), storage, nil, expr, time.Unix(0, 0), time.Unix(0, 0).Add(r.now-every), every)
	if err != nil {
		return nil, err
	}
	return q.Exec(context.Background()).Matrix()
}
