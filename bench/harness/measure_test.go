package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDigits(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 0.0004: "0.000", 0.8567: "0.857", 3.14159: "3.14", 9.999: "10.00", 43.62: "43.6", 264: "264", 999.7: "1000",
		1234: "1 230", 57712: "57 700", 123456: "123 000", 1234567: "1 230 000", -43.62: "-43.6",
	} {
		require.Equal(t, want, digits(x))
	}
}

func TestFiguresOfNotes(t *testing.T) {
	n := Note{"part", "what", []Figure{{12, "goroutines"}, {96.24, "bytes"}, {0.125, "µs"}, {151.7, "KiB"}}}
	require.Equal(t, "12 goroutines, 96.2 bytes, 0.12 µs, 152 KiB", n.String())
	text, err := json.Marshal(n)
	require.NoError(t, err)
	require.JSONEq(t, `{"part":"part","what":"what","figures":{"goroutines":12,"bytes":96.24,"µs":0.125,"KiB":151.7}}`, string(text))
}

// fixed is a group whose rows make so many pairs, with a p50 that belongs to it.
func fixed(concurrency int, rates map[string]float64, order ...string) Group {
	g := Group{Cell: Cell{Concurrency: concurrency}}
	for _, name := range order {
		r := Row{Driver: name, Result: Result{Driver: name, PairsPerSec: rates[name], P50: 1e6 / max(rates[name], 1)}}
		if rates[name] == 0 {
			r.Err = errors.New("none")
		}
		g.Rows = append(g.Rows, r)
	}
	return g
}

func TestLossesAreShown(t *testing.T) {
	names := []string{"redlock", "floor", "slow", "lone", "absent"}
	groups := []Group{
		fixed(1, map[string]float64{"redlock": 80, "floor": 100, "slow": 1, "lone": 500}, names...),
		fixed(8, map[string]float64{"redlock": 80, "floor": 80.1, "slow": 1}, names...),
	}
	groups[0].Rows[3].Weaker = "one server"
	var out bytes.Buffer
	writeLosses(&out, groups)
	require.Equal(t, `Where redlock is behind, its figure as a multiple of theirs:

* Pairs per second – 1: floor 0.80
* p50 of a pair, µs – 1: floor 1.25

`, out.String())

	out.Reset()
	groups[0].Rows[0].Err = errors.New("away")
	writeLosses(&out, groups[:1])
	writeLosses(&out, nil)
	require.Empty(t, out.String())
}

func TestThirdsOfATimeline(t *testing.T) {
	var r Result
	for i := range timelineSlots {
		r.Timeline = append(r.Timeline, Slot{PairsPerSec: float64(100 * (1 + i*3/timelineSlots))})
	}
	r.Timeline[30].PairsPerSec = 40
	g := Group{}
	for name, want := range map[string]string{"before": "100", "away": "192", "after": "300", "lowest": "40.0"} {
		require.Equal(t, want, measures[name].text(g, r), name)
		require.Equal(t, "–", measures[name].text(g, Result{}), name)
	}
}

func TestAxes(t *testing.T) {
	axis, labels := axes([]Group{{Cell: Cell{Nodes: 5, Concurrency: 8}}, {Cell: Cell{Nodes: 3, Concurrency: 8}}})
	require.Equal(t, "nodes", axis)
	require.Equal(t, []string{"5", "3"}, labels)
	_, labels = axes([]Group{{Cell: Cell{Concurrency: 8}}})
	require.Equal(t, []string{"8 goroutines"}, labels)
}
