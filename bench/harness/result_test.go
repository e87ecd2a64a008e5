package harness

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJSONKeys(t *testing.T) {
	line, err := json.Marshal(Result{TriesPerPair: 1, FirstError: "x"})
	require.NoError(t, err)
	var got []string
	for _, m := range regexp.MustCompile(`"(\w+)":`).FindAllStringSubmatch(string(line), -1) {
		got = append(got, m[1])
	}
	require.Equal(t, strings.Fields("driver scenario nodes concurrency seconds pairs pairs_per_sec p50_us p99_us p999_us max_us "+
		"allocs_per_pair bytes_per_pair client_cpu_us_per_pair errors goroutines"), got)
}

func TestMedian(t *testing.T) {
	one := Result{Driver: "d", PairsPerSec: 30, P99: 1, CPUPerPair: 7, AcquireP50: 1, Pairs: 3, Goroutines: 4}
	two := Result{Driver: "d", PairsPerSec: 10, P99: 9, CPUPerPair: 8, AcquireP50: 3, Pairs: 1, Goroutines: 4, Errors: 1, FirstError: "lost"}
	three := Result{Driver: "d", PairsPerSec: 20, P99: 5, CPUPerPair: 6, AcquireP50: 2, Pairs: 2, Goroutines: 6}
	require.Equal(t, one, Median([]Result{one}))

	m := Median([]Result{one, two, three})
	require.Equal(t, Result{
		Driver: "d", PairsPerSec: 20, P99: 5, CPUPerPair: 7, AcquireP50: 2, Pairs: 2, Goroutines: 4, Errors: 1, FirstError: "lost",
		Rounds: 3, Spread: &Spread{PairsPerSec: Range{10, 30}, P99: Range{1, 9}, CPUPerPair: Range{6, 8}},
	}, m)
	require.InDelta(t, 25, Median([]Result{one, three}).PairsPerSec, 0, "of an even number, between the two")
}

func TestCellWithoutPairsHasFiguresThatJSONKnows(t *testing.T) {
	var from, to sample
	to.at = from.at.Add(1)
	_, err := json.Marshal(newResult(Config{}, &Probe{}, &from, &to))
	require.NoError(t, err)
}
