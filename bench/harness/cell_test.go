package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/bench/result"
)

// until measures with ever longer windows until one had enough in it: how long
// that takes is for the machine to say, not for a test.
func until(t *testing.T, d Driver, cfg Config, enough func(result.Result) bool) result.Result {
	t.Helper()
	for window := 20 * time.Millisecond; ; window *= 2 {
		require.Less(t, window, 30*time.Second)
		r, err := Measure(t.Context(), d, cfg, Timing{Warmup: time.Millisecond, Window: window})
		require.NoError(t, err)
		require.GreaterOrEqual(t, r.Seconds, window.Seconds())
		if enough(r) {
			return r
		}
	}
}

func manyPairs(r result.Result) bool  { return r.Pairs >= 1000 }
func manyErrors(r result.Result) bool { return r.Errors >= 1000 }

// still is a driver without servers.
type still struct {
	name    string
	acquire func(n int) (bool, error) // of a worker's n-th attempt
	release error
	session Session
	openErr error
}

func (d *still) Name() string { return d.name }

func (d *still) Open(context.Context, Config) (Session, error) {
	if d.session != nil || d.openErr != nil {
		return d.session, d.openErr
	}
	return d, nil
}

func (d *still) Worker() (Worker, error) { return &stillWorker{driver: d}, nil }
func (d *still) Close() error            { return nil }

type stillWorker struct {
	driver *still
	n      int
}

func (w *stillWorker) Acquire(context.Context, string) (bool, error) {
	runtime.Gosched()
	w.n++
	if w.driver.acquire == nil {
		return true, nil
	}
	return w.driver.acquire(w.n)
}

func (w *stillWorker) Release(context.Context) error { return w.driver.release }

// runner is a session with a loop of its own.
type runner struct {
	run   func(ctx context.Context, p *Probe) error
	close error
}

func (r runner) Run(ctx context.Context, p *Probe) error { return r.run(ctx, p) }
func (r runner) Close() error                            { return r.close }

func cell(concurrency int) Config {
	return Config{Nodes: []string{"nowhere"}, Scenario: Uncontended, Concurrency: concurrency, Keys: keys(concurrency, MinKeyLen)}
}

func TestMeasureCounts(t *testing.T) {
	r := until(t, &still{name: "d"}, cell(3), manyPairs)
	require.Equal(t, "d", r.Driver)
	require.Equal(t, 3, r.Concurrency)
	require.InEpsilon(t, r.Pairs/r.Seconds, r.PairsPerSec, 0.1)
	require.Zero(t, r.Errors)
	require.InDelta(t, 1, r.TriesPerPair, 0)
	require.GreaterOrEqual(t, r.Goroutines, 3.0+1)
	require.LessOrEqual(t, r.P50, r.P99)
	require.LessOrEqual(t, r.P99, r.Max)
	require.LessOrEqual(t, r.AcquireP50+r.ReleaseP50, 2*r.Max, "the halves are timed")
	require.True(t, r.AcquireP50 > 0 || runtime.GOOS == "windows") // its clock has a grain of half a millisecond
	require.Less(t, r.AllocsPerPair, 0.1, "the harness allocates nothing for a pair")

	r = until(t, &still{acquire: func(n int) (bool, error) { return n%4 == 0, nil }}, cell(2), manyPairs)
	require.InDelta(t, 4, r.TriesPerPair, 0.1)
	require.Zero(t, r.Errors)

	sad := errors.New("no luck")
	r = until(t, &still{acquire: func(n int) (bool, error) { return n%2 == 0, map[bool]error{true: sad}[n%2 == 1] }}, cell(1), manyErrors)
	require.Positive(t, r.Pairs)
	require.Equal(t, "no luck", r.FirstError)
	r = until(t, &still{release: sad}, cell(1), manyErrors)
	require.Zero(t, r.Pairs, "a lock that was not given back is no pair")

	r = until(t, &still{session: runner{run: func(_ context.Context, p *Probe) error {
		for p.Running() {
			p.Pairs(7, time.Millisecond)
			runtime.Gosched()
		}
		return nil
	}}}, cell(7), manyPairs)
	require.Zero(t, uint64(r.Pairs)%7)
	require.InEpsilon(t, 1000, r.P999, 0.01)
}

// TestPacedCells: pairs are as many as were asked for, and each counts from when it was due; a hold
// is not counted.
func TestPacedCells(t *testing.T) {
	cfg := cell(2)
	cfg.Scenario, cfg.Rate, cfg.Hold = Uncontended, 20, 50*time.Millisecond
	until(t, &still{name: "idle"}, cfg, func(r result.Result) bool {
		return r.Pairs >= 15 && r.PairsPerSec < 40 && r.P50 < 50_000 // once the machine lets it
	})

	cfg.Rate, cfg.Hold = 100_000, 0
	late := func(int) (bool, error) { time.Sleep(time.Millisecond); return true, nil }
	r := until(t, &still{name: "slow", acquire: late}, cfg, func(r result.Result) bool { return r.Pairs >= 20 })
	require.Greater(t, r.P50, 5000.0, "it counts from where its worker came to it")

	_, err := Measure(t.Context(), &still{name: "alone", session: runner{}}, cfg, Timing{})
	require.ErrorIs(t, err, NotPaced)
}

func TestMeasureFails(t *testing.T) {
	sad := errors.New("no luck")
	long := Timing{Warmup: time.Hour, Window: time.Hour}
	for name, d := range map[string]*still{
		"open":  {openErr: sad},
		"run":   {session: runner{run: func(context.Context, *Probe) error { return sad }}},
		"close": {session: runner{run: func(context.Context, *Probe) error { return errors.New("another") }, close: sad}},
	} {
		_, err := Measure(t.Context(), d, cell(1), long)
		require.ErrorIs(t, err, sad, name)
	}
	_, err := Measure(t.Context(), &still{acquire: func(int) (bool, error) { return false, fmt.Errorf("%w: %w", ErrBroken, sad) }}, cell(1), long)
	require.ErrorIs(t, err, sad, "a session that is broken ends the cell")
	_, err = Measure(t.Context(), &still{session: runner{run: func(context.Context, *Probe) error { return nil }}}, cell(1), long)
	require.ErrorIs(t, err, errEarly)
	_, err = Measure(t.Context(), &still{session: io.NopCloser(nil)}, cell(1), long)
	require.ErrorContains(t, err, "neither a Pool nor a Runner")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Measure(ctx, &still{}, cell(2), long)
	require.ErrorIs(t, err, context.Canceled)
}

// TestDisturbances: one strikes before the window, and is healed although something went wrong.
func TestDisturbances(t *testing.T) {
	sad := errors.New("no luck")
	var order []string
	var strike error
	timing := Timing{Warmup: time.Millisecond, Window: 3 * time.Millisecond, Disturbance: &Disturbance{
		Strike: func() error { order = append(order, "strike"); return strike },
		Heal:   func() error { order = append(order, "heal"); return nil },
	}}
	for _, strike = range []error{nil, sad} {
		_, err := Measure(t.Context(), &still{name: "d"}, cell(1), timing)
		require.ErrorIs(t, err, strike)
	}
	require.Equal(t, []string{"strike", "heal", "strike", "heal"}, order)
}
