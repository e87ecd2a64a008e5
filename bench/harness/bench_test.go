package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// quick are the flags of a run over embedded masters that takes no time.
var quick = []string{"-n", "3", "-c", "1,2", "-d", "5ms", "-warmup", "1ms", "-rounds", "3"}

// program runs all of its drivers by default.
func program(drivers ...Driver) Program {
	p := Program{Drivers: drivers}
	for _, d := range drivers {
		p.Chosen = append(p.Chosen, d.Name())
	}
	return p
}

func TestMainPrintsATable(t *testing.T) {
	profile := filepath.Join(t.TempDir(), "cpu")
	var stdout, stderr bytes.Buffer
	drivers := []Driver{&still{name: "mine"}, &still{name: "floor"}, &still{name: "alien", openErr: fmt.Errorf("%w: only on mars", ErrUnsupported)}}
	code := program(drivers...).Main(append(quick, "-cpuprofile", profile), &stdout, &stderr)
	require.Zero(t, code, stderr.String())
	require.Empty(t, stderr.String())
	out := stdout.String()
	for _, want := range []string{
		"GOMAXPROCS", "3 embedded masters", "commit ",
		"uncontended, concurrency 1\n", "uncontended, concurrency 2\n", "hot, concurrency 2\n",
		"×floor", "pairs/s min–max", "alien: open: not supported: only on mars\n",
	} {
		require.Contains(t, out, want)
	}
	require.Equal(t, 4, strings.Count(out, "\nmine "))
	info, err := os.Stat(profile)
	require.NoError(t, err)
	require.Positive(t, info.Size())
}

func TestMainPrintsJSON(t *testing.T) {
	var stdout, stderr bytes.Buffer
	require.Zero(t, program(&still{name: "mine"}).Main(append(quick, "-json", "-scenario", "hot"), &stdout, &stderr), stderr.String())
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	require.Len(t, lines, 2, "one a cell, however many rounds")
	for i, line := range lines {
		var r Result
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		require.Equal(t, i+1, r.Concurrency)
		require.Equal(t, 3, r.Nodes)
		require.Equal(t, Hot, r.Scenario)
	}
}

func TestMainReportsWhatFails(t *testing.T) {
	var stdout, stderr bytes.Buffer
	sad := program(&still{name: "sad", openErr: errors.New("no luck")})
	require.Equal(t, 1, sad.Main(quick, &stdout, &stderr))
	require.Contains(t, stdout.String(), "sad: open: no luck")
	require.Contains(t, stderr.String(), "not all cells could be measured")

	stderr.Reset()
	require.Equal(t, 1, sad.Main([]string{"-nodes", "127.0.0.1:1"}, &stdout, &stderr))
	require.Contains(t, stderr.String(), "127.0.0.1:1")
}
