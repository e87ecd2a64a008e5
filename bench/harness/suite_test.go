package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/realredis"
)

// everySection is a program that has all there are.
func everySection() Program {
	var all []Driver
	for _, name := range []string{"redlock", "redlock-portable", "redlock-scripted", "redlock-submit", "floor", "floor-native"} {
		all = append(all, &still{name: name})
	}
	p := program(all...)
	p.Growth = func(context.Context, []string, func(Note)) error { return nil }
	p.Suite = Suite{Drivers: []string{"redlock", "redlock-portable", "floor"}, Sections: append(Sections("1,64,512", "1,64"), OwnSections()...)}
	return p
}

func TestSectionsAreWhatTheProgramUnderstands(t *testing.T) {
	p := everySection()
	var all time.Duration
	seen := map[string]bool{}
	for _, part := range p.parts(nil, nil) {
		require.NoError(t, part.err, part.Name)
		require.False(t, seen[part.Name], part.Name)
		seen[part.Name] = true
		require.True(t, part.opts.Client || len(part.opts.cells()) > 0 && len(part.Shows) > 0, part.Name)
		for _, name := range part.Shows {
			require.Contains(t, measures, name, part.Name)
		}
		require.Equal(t, 3, part.opts.Rounds)
		all += part.opts.estimate()
	}
	require.Less(t, all, 20*time.Minute, "somebody has to wait for it")
}

func TestPartsHaveWhatWasGiven(t *testing.T) {
	p := everySection()
	parts := p.parts([]string{"-rounds", "5", "-driver", "floor", "-c", "7"}, []string{"hot", "valkey9"})
	require.Len(t, parts, 2)
	require.Equal(t, 5, parts[0].opts.Rounds)
	require.Equal(t, []string{"floor"}, parts[0].opts.Drivers)
	require.Equal(t, []int{2, 8, 64}, parts[0].opts.Concurrency, "the section knows best")
	require.Equal(t, realredis.Valkey9, parts[1].opts.Server)

	parts = p.parts([]string{"-nodes", "a:1"}, []string{"nodes"})
	require.ErrorContains(t, parts[0].err, "give one of them")
}

func TestSuite(t *testing.T) {
	t.Setenv(realredis.EnvValkey9, "")
	dir := filepath.Join(t.TempDir(), "new")
	fast := &still{name: "floor"}
	p := program(&still{name: "redlock"}, &weak{still{name: "lone"}}, fast, &still{name: "alien", openErr: fmt.Errorf("alien: %w: only on mars", ErrUnsupported)})
	p.Notes = []string{"as it is"}
	p.Growth = func(_ context.Context, nodes []string, note func(Note)) error {
		require.NotEmpty(t, nodes)
		for _, what := range []string{"1", "2"} {
			note(Note{"clients", what, []Figure{{12345, "pairs/s"}}})
		}
		note(Note{"idle", "CPU", []Figure{{0.5, "µs a second"}}})
		return nil
	}
	var reports []string
	p.Report = func(dir string, _ *Run) error { reports = append(reports, filepath.Base(dir)); return nil }
	p.Suite.Sections = []Section{
		{"many", "Many cells", "-scenario uncontended -c 1,2 -n 1,3", []string{"pairs", "floor", "acquire", "ping"}},
		{"one", "One cell", "-scenario uncontended -c 2 -n 3 -fault back", []string{"before", "away", "lowest", "heap", "rss"}},
		{"newer", "Newer servers", "-server valkey9", []string{"pairs"}},
		{"client", "Clients", "-client -n 1", nil},
	}
	args := []string{"-suite", dir, "-rounds", "2", "-d", "20ms", "-warmup", "1ms"}
	var stdout, stderr bytes.Buffer
	require.Zero(t, p.Main(args, &stdout, &stderr), stderr.String())
	require.Contains(t, stderr.String(), "suite: 4 sections, 13 cells, about")
	require.Contains(t, stderr.String(), "newer: skipped: ")
	require.Equal(t, []string{"many", "one", "client"}, reports)

	text, err := os.ReadFile(filepath.Join(dir, "summary.md"))
	require.NoError(t, err)
	for _, want := range []string{
		"* servers: 3 embedded masters in a process of their own, unless", "20ms after 1ms of warm-up, medians of 2", "commit ",
		"## Many cells\n\n`-scenario uncontended -c 1,2 -n 1,3`\n",
		"by nodes and goroutines:\n\n| driver | 1 / 1 | 1 / 2 | 3 / 1 | 3 / 2 |\n|---|---|---|---|---|\n",
		"| *a PING* | ", "\n| **redlock** | ", "\n| lone * | ", "\n| alien | – | – | – | – |\n",
		"* no figures of alien: alien: not supported: only on mars (1 / 1; 1 / 2; 3 / 1; 3 / 2)\n",
		"| driver | Pairs per second before | while it is away | ",
		"## Newer servers\n\n`-server valkey9`\n\nSkipped: realredis: no server of this kind",
		"clients:\n\n| | pairs/s |\n|---|---|\n| 1 | 12 300 |\n| 2 | 12 300 |\n\nidle:\n\n* CPU: 0.50 µs a second\n",
		"* lone *: one server, a weaker guarantee", "* as it is\n",
	} {
		require.Contains(t, string(text), want)
	}

	lines, err := os.ReadFile(filepath.Join(dir, "results.jsonl"))
	require.NoError(t, err)
	kinds := map[string]int{}
	for line := range strings.Lines(string(lines)) {
		var o map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &o), line)
		for _, key := range []string{"args", "pairs_per_sec", "error", "note"} {
			if _, is := o[key]; is {
				kinds[fmt.Sprint(o["section"], " ", key)]++
			}
		}
	}
	require.Equal(t, map[string]int{
		"many args": 1, "one args": 1, "newer args": 1, "client args": 1,
		"many pairs_per_sec": 12, "one pairs_per_sec": 3, "many error": 4, "one error": 1, "newer error": 1, "client note": 3,
	}, kinds)
}

// weak is a driver that promises less.
type weak struct{ still }

func (*weak) Weaker() string { return "one server" }

func TestSuiteThatFails(t *testing.T) {
	p := program(&still{name: "sad", openErr: errors.New("no luck")})
	p.Suite.Sections = []Section{
		{"bad", "Bad", "-scenario uncontended -c 1 -n 1", []string{"pairs"}},
		{"worse", "Worse", "-frobnicate", nil},
	}
	dir := t.TempDir()
	var stderr bytes.Buffer
	require.Equal(t, 1, p.Main([]string{"-suite", dir, "-d", "1ms", "-warmup", "0"}, io.Discard, &stderr))
	require.Contains(t, stderr.String(), "section bad: not all cells could be measured")
	require.Contains(t, stderr.String(), "section worse: flag provided but not defined")
	text, err := os.ReadFile(filepath.Join(dir, "summary.md"))
	require.NoError(t, err)
	require.Contains(t, string(text), "no figures of sad: open: no luck")
	require.Contains(t, string(text), "Not complete: flag provided")

	require.Equal(t, 1, p.Main([]string{"-suite", dir, "-only", "worse"}, io.Discard, &stderr))
	text, err = os.ReadFile(filepath.Join(dir, "summary.md"))
	require.NoError(t, err)
	require.Contains(t, string(text), "Nothing.")
}
