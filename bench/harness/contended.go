package harness

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redlock-go/redlock/bench/child"
	"github.com/redlock-go/redlock/bench/result"
)

// gathering is the time from the order to begin until all processes have read it.
const gathering = 100 * time.Millisecond

// errOverlap is for a lock that two hold at once.
var errOverlap = errors.New("two held the same key at once")

// contest is a contended cell: processes with workers that want the same keys.
type contest struct {
	site   *site
	cell   result.Cell
	spec   spec
	timing Timing
	board  *board
	crowds []crowd

	mu       sync.Mutex
	crew     []*child.Process // the present one in each place; nil while there is none
	gone     []*child.Process // killed
	faults   int
	running  sync.WaitGroup // processes that have not answered
	answered []error        // of each place
}

// contend measures a contended cell. There is a result for each of its crowds.
func (s *site) contend(ctx context.Context, d Driver, cfg Config, cell result.Cell, timing Timing) (all []result.Result, err error) {
	c := &contest{site: s, cell: cell, timing: timing, crew: make([]*child.Process, cell.Processes), answered: make([]error, cell.Processes)}
	c.crowds = []crowd{{Processes: cell.Processes, Workers: cell.Concurrency, Hold: cell.Hold}}
	if cell.Crowd != "" {
		if c.crowds, err = crowdsOf(cell.Crowd); err != nil {
			return nil, err
		}
	}
	cfg.Keys = make([][]string, 1)
	for _, own := range keys(cell.Keys, cell.KeyLen) {
		cfg.Keys[0] = append(cfg.Keys[0], own[0])
	}
	c.spec = spec{Driver: d.Name(), Config: cfg, Slots: cell.Keys, Processes: cell.Processes, Stride: cell.Concurrency, Once: cell.Once, Procs: cell.Procs}
	c.spec.Shares = slices.ContainsFunc(c.crowds, func(c crowd) bool { return c.Share })
	if !cell.Once {
		c.spec.Lead = timing.Warmup
		if timing.Disturbance != nil {
			c.spec.Lead *= 2
		}
	}
	if d, is := d.(Divided); is {
		c.spec.Slots *= d.Permits()
	}
	c.board, c.spec.Board, err = newBoard(c.spec.Slots, cell.Processes, cell.Concurrency)
	if c.spec.Board != "" {
		defer func() { err = errors.Join(err, os.Remove(c.spec.Board)) }()
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.board.Close()) }()
	defer c.end()
	if err := c.gather(); err != nil {
		return nil, fmt.Errorf("%s: %w", d.Name(), err)
	}
	all, err = c.run(ctx)
	if err == nil && cell.Fault == result.Any {
		c.end()
		err = c.awaitEmpty(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Name(), err)
	}
	return all, nil
}

// gather starts the processes.
func (c *contest) gather() error {
	errs := make([]error, len(c.crew))
	var wg sync.WaitGroup
	for i := range c.crew {
		wg.Go(func() { errs[i] = c.start(i) })
	}
	wg.Wait()
	return cmp.Or(errs...) // all processes mostly have the same
}

// start starts the process of one place.
func (c *contest) start(place int) error {
	s := c.spec
	s.Process, s.Crowd = place, c.crowdOf(place)
	s.Driver = cmp.Or(s.Crowd.Driver, s.Driver)
	s.Config.Concurrency, s.Config.TTL = s.Crowd.Workers, s.Crowd.ttlOf(s.Config.TTL)
	s.Config.Patient, s.Config.Share = c.cell.Crowd != "", s.Crowd.Share
	if s.Crowd.Poll {
		s.Config.Scenario = Uncontended // it does not wait
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	p, answers, err := child.Start(contenderEnv, string(text), 1)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.crew[place] = p
	return errorOf(answers[0])
}

// crowdOf is the crowd of the process of one place.
func (c *contest) crowdOf(place int) crowd {
	for _, crowd := range c.crowds {
		if place < crowd.Processes {
			return crowd
		}
		place -= crowd.Processes
	}
	panic("no such place")
}

// errorOf is the answer of a process as an error.
func errorOf(answer string) error {
	if answer == ready {
		return nil
	}
	if reason, is := strings.CutPrefix(answer, Unsupported("").Error()); is {
		return Unsupported(reason)
	}
	return errors.New(answer)
}

// order starts the work of the process of one place.
func (c *contest) order(place int) {
	c.running.Add(1)
	p := c.crew[place]
	go func() {
		defer c.running.Done()
		answer, err := p.Ask("begin")
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.crew[place] == p { // it was not killed
			if err == nil {
				err = errorOf(answer)
			}
			c.answered[place] = err
		}
	}()
}

// end ends all processes.
func (c *contest) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range append(c.gone, c.crew...) {
		if p != nil {
			_ = p.Close()
		}
	}
}

// run measures the cell.
func (c *contest) run(ctx context.Context) (_ []result.Result, err error) {
	from := now() + int64(gathering+c.spec.Lead)
	if c.cell.Once && c.timing.Disturbance != nil {
		from += int64(c.timing.Warmup)
	}
	c.board.from.Store(from)
	c.board.to.Store(from + int64(c.timing.Window))
	for i := range c.crew {
		c.order(i)
	}
	until := func(at int64) { _ = sleep(ctx, time.Duration(at-now())) }

	heal := func() error { return nil }
	if d := c.timing.Disturbance; d != nil {
		until(from - int64(c.timing.Warmup))
		heal = d.Heal
		err = d.Strike()
	}
	until(from)
	before := c.site.commands(ctx)
	switch {
	case err != nil:
	case c.cell.Once:
		c.running.Wait()
	case c.cell.Fault == result.Any:
		err = c.havoc(ctx)
	case c.cell.Fault.OfClients():
		err = c.strike(ctx)
	}
	if !c.cell.Once {
		until(c.board.to.Load())
	}
	after := c.site.commands(ctx)
	err = cmp.Or(ctx.Err(), errors.Join(err, heal()))
	if err != nil {
		return nil, err
	}
	if err := bounded(func() error { c.running.Wait(); return nil }); err != nil {
		return nil, errors.New("a process hangs")
	}
	if err := cmp.Or(c.answered...); err != nil {
		return nil, err
	}
	return c.results(between(before, after))
}

// sleep sleeps unless the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(max(d, 0)):
		return nil
	}
}

// results reads the figures of each crowd off the board.
func (c *contest) results(commands float64) (all []result.Result, err error) {
	all = make([]result.Result, len(c.crowds))
	var pairs float64
	var overlaps uint64
	var place int
	for i, crowd := range c.crowds {
		overlaps += c.figures(&all[i], crowd, place)
		place += crowd.Processes
		pairs += all[i].Pairs
	}
	if overlaps > 0 {
		return nil, fmt.Errorf("%w: %d times", errOverlap, overlaps)
	}
	if pairs == 0 && c.cell.Crowd == "" {
		return nil, fmt.Errorf("not one grant; the first error: %s", cmp.Or(all[0].FirstError, "none"))
	}
	for i := range all {
		all[i].CommandsPerPair = round(commands / max(pairs, 1))
	}
	return all, nil
}

// figures computes the figures of a crowd from its first place on.
func (c *contest) figures(r *result.Result, crowd crowd, from int) (overlaps uint64) {
	var wait, same, cross, orphan Histogram
	var end, cpu int64
	f := &r.Figures
	f.WorkerLeast, f.ProcessLeast = math.Inf(1), math.Inf(1)
	for place := from; place < from+crowd.Processes; place++ {
		crew := &c.board.crews[place]
		wait.Merge(&crew.wait)
		same.Merge(&crew.same)
		cross.Merge(&crew.cross)
		orphan.Merge(&crew.orphan)
		before := f.Pairs
		for i := range crowd.Workers {
			one := &c.board.records[place*c.cell.Concurrency+i]
			overlaps += one.overlaps
			f.Errors += float64(one.errors)
			r.FirstError = cmp.Or(r.FirstError, string(bytes.TrimRight(one.first[:], "\x00")))
			grants := float64(one.grants)
			f.Pairs += grants
			f.WorkerLeast, f.WorkerMost = min(f.WorkerLeast, grants), max(f.WorkerMost, grants)
			end = max(end, one.end)
		}
		own := f.Pairs - before
		f.ProcessLeast, f.ProcessMost = min(f.ProcessLeast, own), max(f.ProcessMost, own)
		cpu += crew.cpuTo.Load() - crew.cpuFrom.Load()
	}
	workers, processes := float64(crowd.Processes*crowd.Workers), float64(crowd.Processes)
	elapsed := c.timing.Window
	if c.cell.Once && f.Pairs == workers {
		elapsed = time.Duration(end - c.board.from.Load())
	}
	pairs := max(f.Pairs, 1) // a crowd that never got the lock has its longest wait
	f.Seconds = round(elapsed.Seconds())
	f.PairsPerSec = round(f.Pairs / elapsed.Seconds())
	f.IdealShare = round(f.Pairs * float64(c.cell.Hold) / float64(elapsed))
	f.P50, f.P99, f.P999 = micros(wait.Quantile(0.50)), micros(wait.Quantile(0.99)), micros(wait.Quantile(0.999))
	f.Max = micros(wait.Max())
	f.MaxOfFair = round(f.Max / (workers * micros(elapsed) / pairs))
	f.WorkerMean = round(f.Pairs / workers)
	f.WorkerLeast, f.WorkerMost = round(f.WorkerLeast*workers/pairs), round(f.WorkerMost*workers/pairs)
	f.ProcessLeast, f.ProcessMost = round(f.ProcessLeast*processes/pairs), round(f.ProcessMost*processes/pairs)
	f.CrossP50, f.CrossP99 = micros(cross.Quantile(0.50)), micros(cross.Quantile(0.99))
	others := float64(cross.Count())
	same.Merge(&cross)
	f.HandoffP50, f.HandoffP99, f.HandoffMax = micros(same.Quantile(0.50)), micros(same.Quantile(0.99)), micros(same.Max())
	f.CrossShare = round(others / max(float64(same.Count()), 1))
	f.Kills, f.Faults = float64(len(c.gone)), float64(c.faults)
	f.OrphanP50, f.OrphanMax = micros(orphan.Quantile(0.50)), micros(orphan.Max())
	if f.Kills == 0 && f.Pairs > 0 { // else what the dead have used is not known
		f.CPUPerPair = round(micros(time.Duration(cpu)) / pairs)
	}
	return overlaps
}
