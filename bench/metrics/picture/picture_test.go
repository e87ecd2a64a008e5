package main

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestQueries: what the dashboard asks for is understood and drawn, and its values are those of Prometheus.
func TestQueries(t *testing.T) {
	file, err := os.ReadFile("../grafana.json")
	require.NoError(t, err)
	var d struct{ Panels []panel }
	require.NoError(t, json.Unmarshal(file, &d))
	const text = `# HELP a b
redlock_operations_total{kind="acquire",result="won"} 30
redlock_operations_total{kind="extend",result="won"} 7
redlock_node_may_vote{node="a:1",redlock_group="0"} 0
redlock_node_may_vote{node="b:1",redlock_group="0"} 1
redlock_ready{redlock_group="0"} 1
redlock_ready{redlock_group="1"} 0
redlock_acquire_duration_seconds_bucket{le="0.1"} 10
redlock_acquire_duration_seconds_bucket{le="0.2"} 30
redlock_acquire_duration_seconds_bucket{le="+Inf"} 30
`
	all := []scrape{read("", 0), read(text, 2*time.Second)}
	var svg bytes.Buffer
	require.NoError(t, draw(&svg, d.Panels, all))
	require.Contains(t, svg.String(), ">won<")
	require.NotContains(t, svg.String(), "NaN")
	rates, err := query(d.Panels[0].Targets[0].Expr, all)
	require.NoError(t, err)
	require.Equal(t, 15.0, rates["won"][1], "a second")
	median, err := query(d.Panels[1].Targets[0].Expr, all)
	require.NoError(t, err)
	require.InDelta(t, 0.125, median[""][1], 1e-9)
	silent, err := query(d.Panels[10].Targets[0].Expr, all)
	require.NoError(t, err)
	require.Equal(t, 1.0, silent["a:1"][1])
	require.NotContains(t, silent, "b:1", "a node with a vote is not counted")
	unready, err := query(d.Panels[11].Targets[0].Expr, all)
	require.NoError(t, err)
	require.Equal(t, 1.0, unready["1"][1])
	require.NotContains(t, unready, "0")
	_, err = query("avg(a{})", all)
	require.ErrorContains(t, err, "not understood")
}
