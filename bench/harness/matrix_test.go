package harness

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func titles(o Options) []string {
	var all []string
	for _, c := range o.cells() {
		all = append(all, c.title(o))
	}
	return all
}

func TestCells(t *testing.T) {
	o, err := parse("-c", "1,2", "-scenario", "hot")
	require.NoError(t, err)
	require.Equal(t, []string{"hot, concurrency 1", "hot, concurrency 2"}, titles(o))

	o, err = parse("-c", "8", "-scenario", "hot", "-n", "3,5", "-rtt", "0s,1ms", "-jitter", "100us", "-fault", "none,slow")
	require.NoError(t, err)
	require.Equal(t, []string{
		"hot, concurrency 8, N = 3, round trip +0s, all nodes well",
		"hot, concurrency 8, N = 3, round trip +0s, node 1 slow (+20ms)",
		"hot, concurrency 8, N = 3, round trip +1ms to +1.1ms, all nodes well",
		"hot, concurrency 8, N = 3, round trip +1ms to +1.1ms, node 1 slow (+20ms)",
	}, titles(o)[:4])
	require.Len(t, o.cells(), 8)
}

func TestGrowthVariesOneThingAtATime(t *testing.T) {
	p := testProgram
	p.Growth = func(context.Context, []string, func(Note)) error { return nil }
	o, err := ParseOptions([]string{"-growth", "-c", "1,64", "-n", "3,5", "-procs", "1,2", "-keylen", "8,24"}, p, io.Discard)
	require.NoError(t, err)
	cells := o.cells()
	require.Len(t, cells, 2+1+1+2, "the usual cell is there once")
	for _, c := range cells {
		unusual := 0
		for _, differs := range []bool{c.Concurrency != usual.Concurrency, c.Nodes != usual.Nodes, c.KeyLen != usual.KeyLen, c.Procs != usual.Procs} {
			if differs {
				unusual++
			}
		}
		require.LessOrEqual(t, unusual, 1)
	}
	_, err = ParseOptions([]string{"-growth", "-nodes", "a:1"}, p, io.Discard)
	require.ErrorContains(t, err, "without -nodes")
	_, err = ParseOptions([]string{"-growth", "-n", "1,3"}, p, io.Discard)
	require.ErrorContains(t, err, "must reach five")
}

func TestDisturbanceInsideTheWindow(t *testing.T) {
	var order []string
	note := func(what string, err error) func() error {
		return func() error {
			order = append(order, what)
			return err
		}
	}
	wait := func(time.Duration) error { return note("wait", nil)() }
	d := Disturbance{Strike: note("strike", nil), Heal: note("heal", nil), Passing: true}
	require.NoError(t, d.pass(wait, time.Second))
	require.Equal(t, []string{"wait", "strike", "wait", "heal", "wait"}, order)

	sad := errors.New("no luck")
	order = nil
	d.Strike = note("strike", sad)
	require.ErrorIs(t, d.pass(wait, time.Second), sad)
	require.Contains(t, order, "heal")
}

func TestDisturbanceAroundTheWindow(t *testing.T) {
	sad := errors.New("no luck")
	healed := 0
	timing := Timing{Warmup: time.Millisecond, Window: time.Millisecond, Disturbance: &Disturbance{
		Strike: func() error { return nil },
		Heal:   func() error { healed++; return nil },
	}}
	_, err := Measure(t.Context(), &still{name: "d"}, cell(1), timing)
	require.NoError(t, err)
	require.Equal(t, 1, healed)
	timing.Disturbance.Strike = func() error { return sad }
	_, err = Measure(t.Context(), &still{name: "d"}, cell(1), timing)
	require.ErrorIs(t, err, sad)
	require.Equal(t, 2, healed, "whatever has happened")
}
