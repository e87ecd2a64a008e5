package render

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/bench/result"
)

// allLines are two rounds of a run with all that a page can show.
func allLines() []result.Line {
	all := []result.Line{{Head: &result.Head{
		Title: "All", Section: "all", Args: "-c 1,64", Shows: []string{"pairs", "floor", "acquire", "before", "lowest"},
		Machine: "a machine", Commit: "abc", Method: "by hand", Notes: []string{"be fair & kind"},
		Servers: []result.Server{{Addr: "a:1", What: "Redis 7"}, {Addr: "b:1", Down: "<gone>"}},
	}}}
	healthy := result.Cell{Scenario: "uncontended", Concurrency: 1, Nodes: 5, Fault: result.NoFault, KeyLen: 24}
	busy, back := healthy, healthy
	busy.Concurrency = 64
	back.Concurrency, back.Fault = 64, result.Back
	for round := 1; round <= 2; round++ {
		for _, cell := range []result.Cell{healthy, busy, back} {
			for i, driver := range []string{"redlock", "lone", "floor", "dead"} {
				rate := float64(100*(i+1)*cell.Concurrency) * float64(round)
				r := &result.Result{Driver: driver, Cell: cell, Round: round, Figures: result.Figures{
					PairsPerSec: rate, P50: 1e6 / rate, P99: 3e6 / rate, CPUPerPair: 1e5 / rate, AcquireP50: 7e5 / rate, PingP50: 12, PingP99: 34,
				}}
				for q := range result.Quantiles {
					r.Tail = append(r.Tail, float64(100+q))
				}
				switch driver {
				case "lone":
					r.Weaker, r.Errors, r.FirstError = "one server", 1, "<lost>"
				case "dead":
					*r = result.Result{Driver: driver, Cell: cell, Round: round, Error: "hangs <for ever>"}
				}
				if cell.Fault == result.Back && r.Error == "" {
					r.Tail = nil
					for at := range 60 {
						slot := result.Slot{At: float64(at) / 10, PairsPerSec: float64(100 * (1 + at/20)), P99: 1000}
						if at == 30 {
							slot = result.Slot{At: slot.At}
						}
						r.Timeline = append(r.Timeline, slot)
					}
				}
				all = append(all, result.Line{Result: r})
			}
		}
	}
	return append(all, result.Line{Note: &result.Note{Part: "clients", What: "idle", Figures: []result.Figure{{Value: 12345, Unit: "bytes"}}}})
}

func TestTheSummary(t *testing.T) {
	var out bytes.Buffer
	summarize(&out, result.Collect(allLines()))
	for _, want := range []string{
		"* servers: 1 × Redis 7, 1 × down, unless", "* b:1 was down: <gone>\n", "## All\n\n`-c 1,64`\n",
		"Pairs per second, by goroutines and node 1:\n\n| driver | 1 / well | 64 / well | 64 / back |\n|---|---|---|---|\n| **redlock** | 150 (100–200) | 9 600 (6 400–12 800) |",
		"| *a PING* | 12.0, 34.0 |", "| lone * |", "| **redlock** | 0.33 |", "| dead | – | – | – |\n",
		"| **redlock** | – | – | 100 |", "| **redlock** | – | – | 0 |",
		"* no figures of dead: hangs <for ever> (1 / well; 64 / well; 64 / back)\n",
		"* errors of lone, of which the first: <lost> (1 / well: 2; ",
		"Where redlock is behind, its figure as a multiple of theirs:\n\n* Pairs per second – 1 / well: floor 0.33;",
		"clients:\n\n* idle: 12 300 bytes\n", "* lone *: one server, a weaker guarantee", "* be fair & kind\n",
	} {
		require.Contains(t, out.String(), want)
	}
}

func TestThePageAndItsPictures(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, Write(dir, result.Collect(allLines())))
	page, err := os.ReadFile(filepath.Join(dir, "index.html"))
	require.NoError(t, err)
	text := string(page)
	for _, want := range []string{
		"a machine", "b:1 was down at the start: &lt;gone&gt;", "be fair &amp; kind", `class="ours"`, "<td>lone *</td>", "hangs &lt;for ever&gt;",
		"the first error: &lt;lost&gt;", "<td>150<small>100–200</small></td>", "a PING takes 12.0 µs", "log scale", "prefers-color-scheme",
	} {
		require.Contains(t, text, want)
	}
	for _, asset := range []string{"src=", "<link", "@import", "url("} {
		require.NotContains(t, text, asset, "the page stands alone")
	}
	require.Less(t, strings.LastIndex(text, "</svg>"), strings.Index(text, "<table>"), "the pictures come first")
	require.Less(t, strings.LastIndex(text, "</table>"), strings.Index(text, "be fair"), "and the notes last")

	names, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	require.NoError(t, err)
	require.Len(t, names, 4+2+2+2, "by goroutines, by fault, latencies, time lines")
	for _, name := range names {
		svg, err := os.ReadFile(name)
		require.NoError(t, err)
		for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else {
				require.NoError(t, err, name)
			}
		}
		require.NotContains(t, string(svg), "NaN")
		require.Contains(t, string(svg), "</style>", "it has its colours along")
		require.Regexp(t, `class="(band|bar)"`, string(svg), "the spread of the rounds")
	}
}

func TestDigits(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 0.0004: "0.000", 0.8567: "0.857", 9.999: "10.00", 43.62: "43.6", 999.7: "1000",
		1234: "1 230", 123456: "123 000", 1234567: "1 230 000", -43.62: "-43.6",
	} {
		require.Equal(t, want, digits(x))
	}
}
