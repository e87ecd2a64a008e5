package metrics

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn/conntest"
)

// work makes a client of three masters that has been granted a lock and refused one.
func work(t *testing.T, cfg redlock.Config) *redlock.Client {
	cfg.Nodes = conntest.Start(t, 3).Addrs()
	cfg.NodeTimeout, cfg.StallTimeout = time.Minute, time.Minute
	client, err := redlock.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	require.NoError(t, client.ReadyAll(t.Context()))
	lock, err := client.TryAcquire(t.Context(), "k", 10*time.Second)
	require.NoError(t, err)
	_, err = client.TryAcquire(t.Context(), "k", 10*time.Second)
	require.ErrorIs(t, err, redlock.ErrTaken)
	require.NoError(t, lock.Release(t.Context()))
	return client
}

// TestCollector: the same series, with the same values, as WriteMetrics, and Prometheus's linter
// has nothing to say.
func TestCollector(t *testing.T) {
	client := work(t, redlock.Config{})
	require.NoError(t, client.Close()) // nothing is counted from here on
	var text strings.Builder
	require.NoError(t, client.Stats().WriteMetrics(&text))
	require.Contains(t, text.String(), `redlock_operations_total{kind="acquire",result="denied"} 1`)
	c := NewCollector(client)
	require.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(text.String())), "Collect hands on each metric of Stats.WriteMetrics")
	problems, err := testutil.CollectAndLint(c)
	require.NoError(t, err)
	require.Empty(t, problems)
}

// TestOpenTelemetry: times are recorded by their results, and the state is observed.
func TestOpenTelemetry(t *testing.T) {
	reader := sdk.NewManualReader()
	meter := sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("test")
	var cfg redlock.Config
	require.NoError(t, Instrument(&cfg, meter))
	acquired, heard := cfg.Hooks.Acquire, make(chan struct{}, 1)
	cfg.Hooks.Acquire = func(a redlock.Acquisition) { acquired(a); heard <- struct{}{} }
	client := work(t, cfg)
	waited, err := client.Acquire(t.Context(), "k", 10*time.Second)
	require.NoError(t, err)
	defer waited.ReleaseAsync()
	<-heard // and so all that came before
	registration, err := Observe(client, meter)
	require.NoError(t, err)
	defer registration.Unregister()

	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &all))
	seen := map[string]int64{}
	for _, m := range all.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				result, _ := p.Attributes.Value("result")
				seen[m.Name+" "+result.AsString()] += int64(p.Count)
			}
		case metricdata.Gauge[int64]:
			for _, p := range data.DataPoints {
				seen[m.Name] += p.Value
			}
		}
	}
	require.EqualValues(t, 1, seen["redlock.attempt.duration denied"])
	require.EqualValues(t, 3, seen["redlock.attempt.duration won"], "two acquires and a release")
	require.EqualValues(t, 1, seen["redlock.wait.duration won"])
	require.EqualValues(t, 1, seen["redlock.locks.held"])
	require.EqualValues(t, 3, seen["redlock.node.up"])
}

// TestDashboard: every query of the dashboard is of a series that exists, with labels that it has.
func TestDashboard(t *testing.T) {
	file, err := os.ReadFile("grafana.json")
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(file, &dashboard))
	require.NotEmpty(t, dashboard.Panels)
	var text strings.Builder
	require.NoError(t, work(t, redlock.Config{}).Stats().WriteMetrics(&text))
	labels := map[string]string{} // of a family, in a line of it
	for _, line := range regexp.MustCompile(`(?m)^(redlock_\w+?)(?:_bucket)?(?:\{(.*)\})? `).FindAllStringSubmatch(text.String(), -1) {
		labels[line[1]] = line[2] + `,job="",le=""`
	}
	names, used := regexp.MustCompile(`redlock_\w+\{`), regexp.MustCompile(`(\w+)=~?"`)
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			for _, name := range names.FindAllString(target.Expr, -1) {
				of, exists := labels[strings.TrimSuffix(strings.TrimSuffix(name, "{"), "_bucket")]
				require.True(t, exists, "%s: %s", panel.Title, name)
				for _, label := range used.FindAllStringSubmatch(target.Expr, -1) {
					require.Contains(t, of, label[1]+`="`, panel.Title)
				}
			}
		}
	}
}
