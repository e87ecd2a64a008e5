package harness

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/bench/result"
)

// Scenarios of what there is much of. They have no window: each ends when all is done.
const (
	// Held has so many locks at the same time, and then releases them. A pair is both. Keys and workers belong to the
	// caller, and are not counted.
	Held = result.Held
	// Kept is Held by a [Keeper], which keeps the locks alive meanwhile. A pair is an extension.
	Kept = result.Kept
	// Idle is so many clients that were used once.
	Idle = result.Idle
)

// Keeper is a worker that can keep its lock alive, and a session that counts the extensions.
type (
	Keeper  interface{ Keep(ctx context.Context) }
	Counter interface{ Extensions() uint64 }
)

const (
	// load is the number of goroutines that acquire and release.
	load = 512
	// rest is how long idle clients are looked at, and before that wait for goroutines that run on for a while.
	rest = 3 * time.Second
)

// many measures a cell of such a scenario.
func many(ctx context.Context, d Driver, cfg Config) (r result.Result, err error) {
	n := cfg.Concurrency
	cfg.Concurrency, cfg.Patient = load, true
	measure := held
	if cfg.Scenario == Idle {
		cfg.Concurrency = 1
		measure = idle
	}
	if r, err = measure(ctx, d, cfg, n); err != nil {
		return result.Result{}, fmt.Errorf("%s: %w", d.Name(), err)
	}
	return r, nil
}

// each sets what one of n holds.
func each(r *result.Result, grown Holdings, n int) {
	r.BytesEach, r.GoroutinesEach, r.DescriptorsEach = round(float64(grown.Bytes)/float64(n)), round(float64(grown.Goroutines)/float64(n)), round(float64(grown.Descriptors)/float64(n))
}

// workersOf opens a driver, and n workers of it.
func workersOf(ctx context.Context, d Driver, cfg Config, n int) (Session, []Worker, error) {
	session, err := d.Open(ctx, cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("open: %w", err)
	}
	pool, ok := session.(Pool)
	if !ok {
		return nil, nil, errors.Join(Unsupported("has no workers"), session.Close())
	}
	workers := make([]Worker, n)
	for i := range workers {
		if workers[i], err = pool.Worker(); err != nil {
			return nil, nil, errors.Join(err, session.Close())
		}
	}
	return session, workers, nil
}

// acquire is an attempt that must win: no other wants the key.
func acquire(ctx context.Context, w Worker, key string) error {
	ok, err := w.Acquire(ctx, key)
	if err == nil && !ok {
		err = errors.New("a free lock is taken")
	}
	return err
}

// idle measures n clients.
func idle(ctx context.Context, d Driver, cfg Config, n int) (r result.Result, err error) {
	before := ReadHoldings(true)
	for i := range n {
		session, workers, err := workersOf(ctx, d, cfg, 1)
		if err != nil {
			return r, err
		}
		defer session.Close()
		key := cfg.Keys[i/keysPerWorker][i%keysPerWorker]
		if err := errors.Join(acquire(ctx, workers[0], key), workers[0].Release(ctx)); err != nil {
			return r, err
		}
	}
	time.Sleep(rest)
	each(&r, ReadHoldings(true).Since(before), n)
	start, cpu := time.Now(), CPUTime()
	time.Sleep(rest)
	r.Seconds = round(time.Since(start).Seconds())
	r.IdleCPU = round(micros(CPUTime()-cpu) / float64(n) / time.Since(start).Seconds())
	return r, nil
}

// span is a part of a measurement, of which the client's CPU and time count.
type span struct{ took, cpu time.Duration }

func (s *span) add(do func()) {
	start, cpu := time.Now(), CPUTime()
	do()
	s.took, s.cpu = s.took+time.Since(start), s.cpu+CPUTime()-cpu
}

// held measures a client with n locks, and how it keeps them alive.
func held(ctx context.Context, d Driver, cfg Config, n int) (r result.Result, err error) {
	session, workers, err := workersOf(ctx, d, cfg, n)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	counter, counts := session.(Counter)
	if _, keeps := workers[0].(Keeper); cfg.Scenario == Kept && !(counts && keeps) {
		return r, Unsupported("does not keep locks alive")
	}
	key := func(i int) string { return cfg.Keys[i/keysPerWorker][i%keysPerWorker] }
	// The client first grows to the size that the load alone gives it.
	if err := together(min(10*load, n), func(i int) error {
		return errors.Join(acquire(ctx, workers[i], key(i)), workers[i].Release(ctx))
	}); err != nil {
		return r, err
	}
	var pairs span
	taken := make([]bool, n)
	before := ReadHoldings(true)
	pairs.add(func() {
		err = together(n, func(i int) error {
			err := acquire(ctx, workers[i], key(i))
			taken[i] = err == nil
			if w, keeps := workers[i].(Keeper); keeps && taken[i] && cfg.Scenario == Kept {
				w.Keep(ctx)
			}
			return err
		})
	})
	grown := ReadHoldings(true).Since(before)
	each(&r, grown, n)
	r.GoroutineGrowth, r.DescriptorGrowth = float64(grown.Goroutines), float64(grown.Descriptors)
	r.Pairs = float64(n)
	if cfg.Scenario == Kept && err == nil {
		from := counter.Extensions()
		pairs = span{}
		pairs.add(func() { time.Sleep(cfg.TTL / 3) }) // in which each is extended once
		r.Pairs = float64(counter.Extensions() - from)
	}
	var lost atomic.Int64
	release := func() {
		_ = together(n, func(i int) error {
			if taken[i] && workers[i].Release(ctx) != nil {
				lost.Add(1)
			}
			return nil
		})
	}
	if cfg.Scenario == Kept {
		release()
	} else {
		pairs.add(release)
	}
	r.Errors, r.Seconds, r.PairsPerSec = float64(lost.Load()), round(pairs.took.Seconds()), round(r.Pairs/pairs.took.Seconds())
	r.CPUPerPair = round(micros(pairs.cpu) / max(r.Pairs, 1))
	return r, err
}

// together does n things in load goroutines, until one fails.
func together(n int, do func(i int) error) error {
	var (
		wg    sync.WaitGroup
		next  atomic.Int64
		first atomic.Pointer[error]
	)
	for range load {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && first.Load() == nil; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					first.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	wg.Wait()
	if err := first.Load(); err != nil {
		return *err
	}
	return nil
}
