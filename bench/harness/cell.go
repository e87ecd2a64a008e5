package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/bench/result"
)

// grace is the time of workers to end their last pair before their context is cancelled, and then
// once more before they are given up.
const grace = 10 * time.Second

// errEarly is for a runner that stops while its cell continues.
var errEarly = errors.New("ended before the window")

// Timing is how long a cell runs, and the disturbance of its nodes.
type Timing struct {
	Warmup      time.Duration                   // uncounted
	Window      time.Duration                   // counted
	Disturbance *Disturbance                    // or nil
	Exact       bool                            // garbage is collected before memory is read, outside the window
	Servers     func(context.Context) []float64 // their CPU, or nil
}

// Disturbance is a fault of nodes that lasts from before the window to its end.
type Disturbance struct {
	Strike, Heal func() error
}

// Measure runs one cell: it opens the driver, lets it warm up, counts over the
// window and closes it. It returns even if the driver hangs.
func Measure(ctx context.Context, driver Driver, cfg Config, timing Timing) (result.Result, error) {
	session, err := driver.Open(ctx, cfg)
	if err != nil {
		return result.Result{}, fmt.Errorf("%s: open: %w", driver.Name(), err)
	}
	r, err := run(ctx, session, cfg, timing)
	err = errors.Join(err, bounded(session.Close))
	if err != nil {
		return result.Result{}, fmt.Errorf("%s: %w", driver.Name(), err)
	}
	r.Driver, r.Weaker = driver.Name(), weakness(driver)
	r.Scenario, r.Nodes, r.Concurrency = cfg.Scenario, len(cfg.Nodes), cfg.Concurrency
	return r, nil
}

// bounded waits for do, but not forever.
func bounded(do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(2 * grace):
		return errors.New("close hangs")
	}
}

// run drives an open session through its phases.
func run(ctx context.Context, session Session, cfg Config, timing Timing) (r result.Result, err error) {
	var phase atomic.Int32
	probes, loops, err := prepare(session, cfg, &phase)
	if err != nil {
		return r, err
	}

	// All that is needed in the window exists before it starts, and garbage of earlier cells
	// is collected now.
	from, to := new(sample), new(sample)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	if timing.Exact {
		debug.FreeOSMemory() // not in the window
	} else {
		runtime.GC()
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(loops))
	for _, loop := range loops {
		go func() { ended <- loop(ctx) }()
	}
	left := len(loops)
	await := func(d time.Duration) error {
		timer.Reset(d)
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			left--
			return cmp.Or(err, errEarly)
		}
	}

	err = await(timing.Warmup)
	heal := func() error { return nil }
	if err == nil {
		from.held = ReadHoldings(timing.Exact)
		if d := timing.Disturbance; d != nil {
			heal = d.Heal
			err = cmp.Or(d.Strike(), await(timing.Warmup))
		}
	}
	if err == nil {
		if timing.Servers != nil {
			from.used = timing.Servers(ctx)
		}
		runtime.ReadMemStats(&from.mem)
		from.cpu, from.idle = CPUTime(), idleTime()
		from.at = time.Now()
		phase.Store(counting)
		err = await(timing.Window)
	}
	phase.Store(settling)
	to.at = time.Now()
	to.cpu, to.idle = CPUTime(), idleTime()
	runtime.ReadMemStats(&to.mem)
	if timing.Servers != nil && from.used != nil {
		to.used = timing.Servers(ctx)
	}
	to.held = ReadHoldings(timing.Exact)
	phase.Store(stopped)

	// A worker that waits for the faulty node may return only now.
	err = errors.Join(err, heal(), collect(ended, left, timer, cancel))
	if err != nil {
		return r, err
	}
	for _, p := range probes[1:] {
		probes[0].merge(p)
	}
	return figures(probes[0], from, to), nil
}

// prepare makes the loops of a cell, each with its own probe.
func prepare(session Session, cfg Config, phase *atomic.Int32) ([]*Probe, []func(context.Context) error, error) {
	switch s := session.(type) {
	case Runner:
		if cfg.Paced() {
			return nil, nil, NotPaced
		}
		p := &Probe{phase: phase}
		return []*Probe{p}, []func(context.Context) error{
			func(ctx context.Context) error { return s.Run(ctx, p) },
		}, nil
	case Pool:
		probes := make([]*Probe, cfg.Concurrency)
		loops := make([]func(context.Context) error, cfg.Concurrency)
		stride := max(cfg.Concurrency/apartAll, 1)
		for i := range loops {
			w, err := s.Worker()
			if err != nil {
				return nil, nil, err
			}
			p := &Probe{phase: phase}
			probes[i] = p
			loops[i] = func(ctx context.Context) error {
				pace, err := newPace(cfg)
				if err != nil {
					return err
				}
				defer pace.close()
				return work(ctx, w, p, pace, cfg.Keys[i], i%stride, stride)
			}
		}
		return probes, loops, nil
	}
	return nil, nil, fmt.Errorf("%T is neither a Pool nor a Runner", session)
}

// apartAll is the number of workers up to which the halves of all pairs are timed. Of more workers
// it is one pair in several: the cost of reading the clock would show.
const apartAll = 64

// work is the measured loop of one worker. The end of one pair is the start of
// the next, so the clock is read once a pair, and twice in one of stride; the workers begin at
// different ones, so that these are spread over the window.
func work(ctx context.Context, w Worker, p *Probe, pace *pace, keys []string, begin, stride int) error {
	if l, ok := w.(Leaver); ok {
		defer l.Leave()
	}
	start := time.Now()
	var middle time.Time
	for i := begin; p.Running(); i++ {
		start = pace.next(start)
		ok, err := w.Acquire(ctx, keys[i%len(keys)])
		switch {
		case errors.Is(err, ErrBroken):
			return err
		case err != nil:
			end := time.Now()
			p.Failed(err, end.Sub(start))
			start = end
			continue
		case !ok:
			p.Refused()
			continue
		}
		apart := i%stride == 0
		if apart {
			middle = time.Now()
		}
		held := pace.hold()
		err = w.Release(ctx)
		end := time.Now()
		if err != nil {
			p.Failed(err, end.Sub(start)-held)
			start = end
			continue
		}
		p.Pairs(1, end.Sub(start)-held)
		if apart {
			p.Apart(1, middle.Sub(start), end.Sub(middle)-held)
		}
		start = end
	}
	return nil
}

// collect waits for n loops to end, cancelling those that do not by
// themselves.
func collect(ended <-chan error, n int, timer *time.Timer, cancel context.CancelFunc) error {
	var all error
	timer.Reset(grace)
	for cancelled := false; n > 0; {
		select {
		case err := <-ended:
			n--
			all = errors.Join(all, err)
		case <-timer.C:
			if cancelled {
				return errors.Join(all, fmt.Errorf("%d workers hang, even after their context was cancelled", n))
			}
			cancelled = true
			cancel()
			timer.Reset(grace)
		}
	}
	return all
}
