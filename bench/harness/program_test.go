package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/bench/proxy"
	"github.com/redlock-go/redlock/bench/render"
	"github.com/redlock-go/redlock/bench/result"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// whole makes the test binary a whole program.
const whole = "REDLOCK_BENCH_TEST_PROGRAM"

func TestMain(m *testing.M) {
	testkit.ChildrenEndAtOnce()
	if os.Getenv(whole) != "" {
		contenders.Execute()
	}
	contenders.ServeIfContender()
	ServeIfMasters()
	proxy.ServeIfProxy()
	os.Exit(m.Run())
}

// quick are the flags of a run over embedded masters that takes no time.
var quick = []string{"-scenario", "uncontended", "-n", "3", "-c", "1,2", "-d", "5ms", "-warmup", "1ms", "-rounds", "3"}

// program runs all of its drivers by default.
func program(drivers ...Driver) Program {
	p := Program{Drivers: drivers}
	p.Chosen = p.names()
	return p
}

// runMain runs a program that does well.
func runMain(t *testing.T, p Program, args ...string) (stdout string) {
	var out, printed bytes.Buffer
	require.Zero(t, p.Main(args, &out, &printed), printed.String())
	return out.String()
}

func TestResultsAreShownAndWrittenAndReadAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "directory")
	p := program(&still{name: "redlock"}, &still{name: "floor"}, &still{name: "alien", openErr: fmt.Errorf("open: %w", Unsupported("only on mars"))})
	p.Notes = []string{"be fair & kind"}
	out := runMain(t, p, append(quick, "-o", dir)...)
	for _, want := range []string{"GOMAXPROCS", "3 × embedded master", "commit ", "uncontended, concurrency 2, 3 nodes; a PING takes", "×floor", "min–max", "alien    not supported: only on mars", "- be fair"} {
		require.Contains(t, out, want)
	}
	require.Equal(t, 2, strings.Count(out, "\nredlock "))
	page := filepath.Join(dir, "README.md")
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(text), "![results](results.svg)")

	file := filepath.Join(dir, "results.jsonl")
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	lines, err := result.Read(f, "")
	require.NoError(t, err)
	require.Len(t, lines, 1+2*(3+3+1), "one a round, and a driver that fails is not asked again")
	require.Equal(t, out, runMain(t, p, "-render", file), "the file has all that was shown")

	// Rounds may be added up in one file, and two files are shown side by side.
	both, err := os.ReadFile(file)
	require.NoError(t, err)
	more := filepath.Join(t.TempDir(), "old.jsonl")
	require.NoError(t, os.WriteFile(more, append(both, both...), 0o644))
	out = runMain(t, p, "-render", file+","+more)
	require.Regexp(t, `\nredlock \(results\) .*\n(.*\n)*redlock \(old\) `, out)

	var stderr bytes.Buffer
	require.Equal(t, 1, p.Main([]string{"-render", page}, io.Discard, &stderr))
	require.Contains(t, stderr.String(), "-render: "+page)
}

// TestNodesThatAreAway: one that is down or stopped is reported, and the rest is
// measured.
func TestNodesThatAreAway(t *testing.T) {
	t.Parallel()
	servers := fakeredis.StartN(t, 3)
	servers[0].Down()
	servers[1].Mute()
	addrs := fakeredis.Addrs(servers)
	args := []string{"-scenario", "uncontended", "-c", "1", "-d", "5ms", "-warmup", "1ms", "-nodes", strings.Join(addrs, ",")}
	out := runMain(t, program(&still{name: "redlock"}, &still{name: "sad", openErr: errors.New("no luck")}), args...)
	require.Contains(t, out, "2 × down, 1 × Redis")
	require.Contains(t, out, addrs[0]+" is down: ")
	require.Contains(t, out, addrs[1]+" is down: ")
	require.Contains(t, out, "\nredlock")
	require.Contains(t, out, "open: no luck")

	_, port, err := net.SplitHostPort(addrs[2])
	require.NoError(t, err)
	var stderr bytes.Buffer
	require.Equal(t, 1, program().Main([]string{"-nodes", addrs[2] + ",[::ffff:127.0.0.1]:" + port}, io.Discard, &stderr))
	require.Contains(t, stderr.String(), "-nodes: "+addrs[2]+" and [::ffff:127.0.0.1]:"+port+" are the same server")
}

func TestWhatFails(t *testing.T) {
	var stdout, stderr bytes.Buffer
	sad := program(&still{name: "sad", openErr: errors.New("no luck")})
	require.Equal(t, 1, sad.Main(quick, &stdout, &stderr))
	require.Contains(t, stdout.String(), "open: no luck")
	require.Contains(t, stderr.String(), "not all cells could be measured")
}

// everySection is a program that has all there are.
func everySection() Program {
	var drivers []Driver
	for _, name := range []string{"redlock", "redlock-portable", "redlock-scripted", "redlock-async", "redlock-submit", "redlock-nohandover", "redlock-groups", "floor", "floor-goroutines"} {
		drivers = append(drivers, &still{name: name})
	}
	p := program(drivers...)
	p.Growth = func(context.Context, []string, func(result.Note)) error { return nil }
	p.Suite = Suite{Drivers: []string{"redlock", "redlock-portable", "floor"}, Sections: append(Sections("1,64,512", "1,64"), OwnSections()...)}
	return p
}

func TestSectionsAreWhatTheProgramUnderstands(t *testing.T) {
	p := everySection()
	var took time.Duration
	for _, part := range p.parts(nil, []string{all}) {
		require.NoError(t, part.err, part.Name)
		require.True(t, part.opts.client || len(part.opts.cells()) > 0 && len(part.Shows) > 0, part.Name)
		// The summary knows all measures that the section shows.
		groups := []*result.Group{{Rows: []*result.Row{{Driver: "redlock", Error: "none"}}}}
		require.NoError(t, render.Write(t.TempDir(), []*result.Run{{Head: result.Head{Shows: part.Shows}, Groups: groups}}))
		require.Equal(t, 3, part.opts.Rounds)
		took += part.opts.estimate()
	}
	require.Less(t, took, 20*time.Minute, "a person waits for it")

	parts := p.parts([]string{"-rounds", "5", "-driver", "floor", "-c", "7"}, []string{"throughput", "valkey9"})
	require.Len(t, parts, 2)
	require.Equal(t, 5, parts[0].opts.Rounds)
	require.Equal(t, []string{"floor"}, parts[0].opts.Drivers)
	require.Equal(t, []int{1, 8, 64, 512, 2048}, parts[0].opts.Concurrency, "the section knows best")
	require.Equal(t, realredis.Valkey9, parts[1].opts.Server)
}

func TestSuite(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("faults of nodes need Linux")
	}
	t.Setenv(realredis.EnvValkey9, "")
	dir := t.TempDir()
	p := program(&still{name: "redlock"}, &still{name: "floor"}, &still{name: "sad", openErr: errors.New("no luck")})
	p.Growth = func(_ context.Context, nodes []string, note func(result.Note)) error {
		require.NotEmpty(t, nodes)
		note(result.Note{Part: "clients", What: "1", Figures: []result.Figure{{Value: 12345, Unit: "pairs/s"}}})
		return nil
	}
	p.Suite.Sections = []Section{
		{"away", "One dies", "-scenario uncontended -c 2 -n 3 -fault hung,refusing", []string{"pairs", "heap"}},
		{"newer", "Newer servers", "-server valkey9", []string{"pairs"}},
		{"bad", "Bad", "-n 3 -nodes a:1", nil},
		{"client", "Clients", "", nil},
	}
	var stdout, stderr bytes.Buffer
	args := []string{"-suite", "all", "-o", dir, "-rounds", "2", "-d", "20ms", "-warmup", "1ms"}
	require.Equal(t, 1, p.Main(args, &stdout, &stderr))
	require.Contains(t, stderr.String(), "newer: skipped: ")
	require.Contains(t, stderr.String(), "section bad: -n and -nodes: give one")
	require.NotContains(t, stderr.String(), "section away", "what a node that is unwell does to a driver is a finding")
	text, err := os.ReadFile(filepath.Join(dir, "README.md"))
	require.NoError(t, err)
	for _, want := range []string{
		"medians of 2, each 20ms after 1ms of warm-up", "## One dies\n\n`-scenario uncontended -c 2 -n 3 -fault hung,refusing`",
		"by fault:\n\n| driver | hung | refusing |\n", "| **redlock** | ", "no figures of sad: open: no luck (hung; refusing)",
		"![One dies](away.svg)", "## Newer servers\n\n`-server valkey9`", "Not complete: ", "clients:\n\n* 1: 12,300 pairs/s\n",
	} {
		require.Contains(t, string(text), want)
	}
}
