package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/redlock-go/redlock/bench/place"
	"github.com/redlock-go/redlock/bench/result"
)

// newHead describes what is about to be measured.
func newHead(ctx context.Context, opts Options, servers []result.Server, section Section, notes []string) result.Head {
	own := place.Servers()
	if len(opts.Nodes) > 0 {
		own = 0 // not known
	}
	return result.Head{
		Section: section.Name,
		Title:   section.Title,
		Args:    section.Args,
		Shows:   section.Shows,
		Machine: describeMachine(),
		Place:   place.Describe(len(opts.Nodes) > 0),
		Own:     own,
		Commit:  commit(ctx),
		Date:    time.Now().UTC().Truncate(time.Second),
		Method: fmt.Sprintf("%v after %v of warm-up, TTL %v, keys of %s bytes",
			opts.Timing.Window, opts.Timing.Warmup, opts.TTL, join(opts.KeyLen)),
		Rounds:  opts.Rounds,
		Drivers: opts.Drivers,
		Servers: servers,
		Notes:   notes,
	}
}

var errInterrupted = errors.New("interrupted")

// defaultProcs is GOMAXPROCS as the program found it.
var defaultProcs = runtime.GOMAXPROCS(0)

// measure measures all drivers under one load. They take turns, and each round begins with
// another one, so that changes of the machine over time affect all of them. A driver that has
// failed once is not measured again.
func (s *site) measure(ctx context.Context, opts Options, drivers []Driver, cell result.Cell, out *output) (results []*result.Result, err error) {
	runtime.GOMAXPROCS(cmp.Or(cell.Procs, defaultProcs))
	if err := s.prepare(cell); err != nil {
		return nil, err
	}
	failed := map[string]bool{}
	for round := range opts.Rounds {
		trips := s.roundTrips(ctx, cell)
		for turn := range drivers {
			d := drivers[(round+turn)%len(drivers)]
			if ctx.Err() != nil {
				return nil, errInterrupted
			}
			if failed[d.Name()] {
				continue
			}
			timing := opts.Timing
			timing.Exact = opts.unwell()
			timing.Disturbance = s.disturbance(cell)
			if cell.Fault == result.NoFault {
				timing.Servers = s.used
			}
			cfg := Config{
				Nodes:       s.nodes(cell),
				TTL:         opts.TTL,
				Scenario:    cell.Scenario,
				Concurrency: cell.Concurrency,
				Hold:        cell.Hold,
				Rate:        cell.Rate,
				Clients:     cell.Clients,
				Killed:      cell.Fault == result.Any,
				Persistent:  opts.Persistent,
			}
			all := make([]result.Result, 1) // of each crowd
			r := &all[0]
			if cell.Scenario == Contended {
				all, err = s.contend(ctx, d, cfg, cell, timing)
			} else if opts.own != nil && cell.Fault == result.NoFault {
				var own *result.Result
				near := cell
				near.RTT, near.Jitter = 0, 0 // its nodes are the proxy
				if own, _, err = s.turn(ctx, opts, *opts.own, d.Name(), cfg.Nodes, near); err == nil {
					*r = *own
					failed[d.Name()] = r.Error != ""
				}
			} else if cell.Scenario.OfMany() {
				cfg.Keys = keys(cell.Concurrency/keysPerWorker+1, cell.KeyLen)
				*r, err = many(ctx, d, cfg)
			} else {
				cfg.Keys = keys(cell.Concurrency, cell.KeyLen)
				*r, err = focused(ctx, opts.Focus, func() (result.Result, error) { return Measure(ctx, d, cfg, timing) })
			}
			if ctx.Err() != nil {
				return nil, errInterrupted
			}
			if err != nil {
				failed[d.Name()] = true
				all = []result.Result{{Error: err.Error(), Unsafe: errors.Is(err, errOverlap)}}
				if lacks := Unsupported(""); errors.As(err, &lacks) {
					all[0].Error, all[0].Lacks = lacks.Error(), true
				}
			}
			for i := range all {
				r := &all[i]
				if cell.RTT > 0 {
					r.Others = 0 // the proxy would be one of them
				}
				r.Driver, r.Weaker = d.Name(), weakness(d)
				r.Cell, r.Round = ofCrowd(cell, i), round+1
				r.PingP50, r.PingP99 = micros(trips.Quantile(0.50)), micros(trips.Quantile(0.99))
				r.Added = r.Above()
				results = append(results, r)
				out.add(result.Line{Result: r})
			}
		}
	}
	return results, nil
}
