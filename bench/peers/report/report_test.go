package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/bench/harness"
)

// result is that of a driver which makes so many pairs a second.
func result(driver string, rate float64) harness.Row {
	var h harness.Histogram
	for i := range 10_000 {
		h.Record(time.Duration(i)*time.Microsecond, 1)
	}
	return harness.Row{Driver: driver, Result: harness.Result{
		Driver: driver, PairsPerSec: rate, P50: 1e6 / rate, P99: 3e6 / rate, CPUPerPair: 1e5 / rate, Latency: &h,
		Spread: &harness.Spread{PairsPerSec: harness.Range{rate / 2, rate * 2}}, AcquireP50: 7e5 / rate, PingP50: 5e5 / rate,
	}}
}

// sample is a run with all that a page can show.
func sample() *harness.Run {
	rows := []harness.Row{result("redlock", 90_000), result("redsync-goredis", 2500), result("floor", 100_000), result("stranger", 1)}
	rows[1].Weaker = "one server"
	rows[1].Result.Errors, rows[1].Result.FirstError = 1, "<gone>"
	dead := harness.Row{Driver: "autopipeline", Err: errors.New("hangs <for ever>")}
	healthy := harness.Cell{Scenario: harness.Uncontended, Concurrency: 1, Nodes: 5, Fault: harness.NoFault, KeyLen: harness.DefaultKeyLen}
	busy, back := healthy, healthy
	busy.Concurrency = 64
	back.Concurrency, back.Fault = 64, harness.Back
	line := append([]harness.Row{}, rows...)
	for i := range line {
		for at := range 60 {
			slot := harness.Slot{At: float64(at) / 10, PairsPerSec: 100, P99: 1000}
			if i == 1 && at > 20 && at < 40 {
				slot = harness.Slot{At: slot.At}
			}
			line[i].Result.Timeline = append(line[i].Result.Timeline, slot)
		}
	}
	return &harness.Run{
		Machine: "a machine", Servers: "some servers", Commit: "abc", Date: time.Now(), Notes: []string{"be fair & kind"},
		Options: harness.Options{Rounds: 3, KeyLen: []int{24}, Timing: harness.Timing{Window: 6 * time.Second}},
		Groups: []harness.Group{
			{Cell: healthy, Rows: append(rows, dead)},
			{Cell: busy, Rows: append(rows, dead)},
			{Cell: back, Rows: append(line, dead)},
		},
	}
}

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "directory")
	run := sample()
	require.NoError(t, Write(dir, run))
	page, err := os.ReadFile(filepath.Join(dir, "index.html"))
	require.NoError(t, err)
	text := string(page)
	for _, want := range []string{
		"a machine", "some servers", "abc", "be fair &amp; kind", `class="ours"`, "redsync-goredis *", "hangs &lt;for ever&gt;",
		"the first error: &lt;gone&gt;", "36.00", "stranger", "first node back", "45000–180000", "<td>1.40</td>",
	} {
		require.Contains(t, text, want)
	}
	for _, asset := range []string{"src=", "<link", "@import", "url("} {
		require.NotContains(t, text, asset, "the page stands alone")
	}
	for _, name := range []string{
		"throughput-concurrency-uncontended-5-nodes", "cpu-concurrency-uncontended-5-nodes", "p99-concurrency-uncontended-5-nodes",
		"p99-fault-uncontended-64-goroutines-5-nodes", "latency-uncontended-1-goroutines-5-nodes", "timeline-uncontended-64-goroutines-5-nodes",
	} {
		f, err := os.Open(filepath.Join(dir, name+".png"))
		require.NoError(t, err)
		_, err = png.Decode(f)
		require.NoError(t, err, name)
		require.NoError(t, f.Close())
		svg, err := os.ReadFile(filepath.Join(dir, name+".svg"))
		require.NoError(t, err)
		for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else {
				require.NoError(t, err, name)
			}
		}
		require.Contains(t, text, `id="`+name+`"`)
	}
	results, err := os.ReadFile(filepath.Join(dir, "results.json"))
	require.NoError(t, err)
	require.Equal(t, 3*4, strings.Count(string(results), "\n"))
}

func TestWriteNothing(t *testing.T) {
	require.NoError(t, Write(t.TempDir(), &harness.Run{}))
	run := sample()
	for i, g := range run.Groups {
		run.Groups[i].Rows = g.Rows[4:]
		require.Error(t, run.Groups[i].Rows[0].Err)
	}
	require.NoError(t, Write(t.TempDir(), run), "nobody could be measured")
}

func TestLogTicks(t *testing.T) {
	var labels []string
	for _, tick := range (logTicks{micros}).Ticks(900, 60_000) {
		if tick.Label != "" {
			labels = append(labels, tick.Label)
		}
	}
	require.Equal(t, []string{"1 ms", "2 ms", "5 ms", "10 ms", "20 ms", "50 ms"}, labels)
	require.Equal(t, "20k", rate(20_000))
	require.Equal(t, "3M", rate(3e6))
	require.Equal(t, "5 µs", micros(5))
}

func TestGapsBreakTheLine(t *testing.T) {
	runs := slots(func(s harness.Slot) float64 { return s.P99 })(0, sample().Groups[2].Rows[1])
	var lengths []int
	for _, points := range runs {
		if len(points) > 0 {
			lengths = append(lengths, len(points))
		}
	}
	require.Equal(t, []int{21, 20}, lengths)
}

func TestSlug(t *testing.T) {
	require.Equal(t, "-hot-5-nodes-round-trip--200us", slug("hot, 5 nodes, round trip +200µs"))
}
