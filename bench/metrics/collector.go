// Package metrics shows the counts of a client to Prometheus and to OpenTelemetry. It is meant to be
// copied: a program that has one of these libraries already needs nothing else. Without them
// redlock's Stats.WriteMetrics writes the same series by itself.
//
// grafana.json is a dashboard of them, which ../results/dashboard.svg shows; ../pictures draws that.
package metrics

import (
	"bytes"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/redlock-go/redlock"
)

// Collector is a [prometheus.Collector] of one client: of the series that [redlock.Stats.WriteMetrics] writes. It reads
// them when it is scraped, and costs nothing in between.
type Collector struct{ client *redlock.Client }

// NewCollector returns a collector of client. A program with several clients gives each its label:
// prometheus.WrapRegistererWith(prometheus.Labels{"client": name}, registry).
func NewCollector(client *redlock.Client) *Collector { return &Collector{client} }

// Describe implements prometheus.Collector. The series are known when they are read.
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	var text bytes.Buffer
	_ = c.client.Stats().WriteMetrics(&text) // to memory
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(&text)
	if err != nil {
		out <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
	}
	for name, f := range families {
		for _, m := range f.Metric {
			var labels, values []string
			for _, l := range m.Label {
				labels, values = append(labels, l.GetName()), append(values, l.GetValue())
			}
			desc := prometheus.NewDesc(name, f.GetHelp(), labels, nil)
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, m.Counter.GetValue(), values...)
			case dto.MetricType_GAUGE:
				out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, m.Gauge.GetValue(), values...)
			case dto.MetricType_HISTOGRAM:
				buckets := map[float64]uint64{}
				for _, b := range m.Histogram.Bucket {
					buckets[b.GetUpperBound()] = b.GetCumulativeCount()
				}
				out <- prometheus.MustNewConstHistogram(desc, m.Histogram.GetSampleCount(), m.Histogram.GetSampleSum(), buckets, values...)
			}
		}
	}
}
