package harness

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/bench/result"
)

// step is how long a pair of the driver sleeper takes.
const step = "REDLOCK_BENCH_TEST_STEP"

// sleeper is a driver that is as slow as its environment says.
type sleeper struct{}

func (sleeper) Name() string                                  { return "sleeper" }
func (sleeper) Close() error                                  { return nil }
func (sleeper) Open(context.Context, Config) (Session, error) { return sleeper{}, nil }
func (sleeper) Worker() (Worker, error)                       { return sleeper{}, nil }
func (sleeper) Release(context.Context) error                 { return nil }
func (sleeper) Acquire(context.Context, string) (bool, error) {
	d, err := time.ParseDuration(os.Getenv(step))
	time.Sleep(d)
	return true, err
}

// TestAgainst: a side that is slower is reported, and one that is not is not.
func TestAgainst(t *testing.T) {
	args := []string{"-against", "HEAD", "-scenario", "uncontended", "-driver", "sleeper", "-c", "1,2", "-n", "1", "-rounds", "11", "-d", "20ms", "-warmup", "1ms", "-notice", "200"}
	p := contenders
	p.Source = "."
	opts, err := ParseOptions(args, p, io.Discard)
	require.NoError(t, err)
	s, err := open(opts)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	compare := func(steps ...string) (string, []result.Line, error) {
		var sides [2]side
		for i, each := range steps {
			sides[i] = side{name: "in " + each, binary: os.Args[0], env: []string{whole + "=1", step + "=" + each}}
		}
		var shown bytes.Buffer
		out, err := newOutput(opts, &shown, io.Discard)
		require.NoError(t, err)
		err = s.compare(t.Context(), opts, sides, out)
		return shown.String(), out.lines, err
	}
	text, lines, err := compare("1ms", "8ms")
	require.ErrorIs(t, err, errSlower)
	require.ErrorContains(t, err, "sleeper, uncontended 2: pairs/s 0.")
	require.Regexp(t, `pairs/s in 1ms +in 8ms +ratio +interval`, text)
	require.GreaterOrEqual(t, len(lines), 2*2*11)
	_, _, err = compare("8ms", "1ms")
	require.NoError(t, err)
	opts.Drivers = []string{"broken"}
	_, _, err = compare("1ms", "1ms")
	require.ErrorContains(t, err, "in 1ms: broken: open: no")
}

// TestBothAreBuilt: the commit and the tree.
func TestBothAreBuilt(t *testing.T) {
	if err := exec.Command("git", "rev-parse", "--verify", "HEAD").Run(); err != nil {
		t.Skip("no repository: ", err)
	}
	p := Program{Source: "./internal/test/mutants"}
	sides, err := p.build(t.Context(), t.TempDir(), "HEAD")
	require.NoError(t, err)
	for _, s := range sides {
		require.FileExists(t, s.binary)
	}
	_, err = p.build(t.Context(), t.TempDir(), "no-such-commit")
	require.ErrorContains(t, err, "no-such-commit")
}
