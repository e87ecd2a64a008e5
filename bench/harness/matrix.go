package harness

import (
	"slices"
	"time"

	"github.com/redlock-go/redlock/bench/result"
)

// The scenarios and the faults, in the order in which they run.
var (
	Scenarios = []Scenario{Uncontended, Contended} // unless others are chosen
	every     = append(slices.Clone(Scenarios), Held, Kept, Idle)
	faults    = []result.Fault{result.NoFault, result.Slow, result.Hung, result.Refusing, result.BlackHole, result.Restarting, result.KillWaiter, result.KillHolder, result.Any}
)

// unwell reports whether a run has faults of nodes: then the first node is reached through the
// proxy in every cell, and memory is read exactly.
func (o Options) unwell() bool {
	return slices.ContainsFunc(o.Faults, func(f result.Fault) bool { return f != result.NoFault && !f.OfClients() })
}

// cells lists every cell that the options ask for, in the order in which they
// run: concurrency changes first, as the tables of a scenario are read.
func (o Options) cells() []result.Cell {
	nodes := o.Masters
	if len(o.Nodes) > 0 {
		nodes = []int{len(o.Nodes)}
	}
	all := []result.Cell{{}}
	all = vary(all, o.Procs, func(c *result.Cell, v int) { c.Procs = v })
	all = vary(all, nodes, func(c *result.Cell, v int) { c.Nodes = v })
	all = vary(all, o.KeyLen, func(c *result.Cell, v int) { c.KeyLen = v })
	all = vary(all, o.RTT, func(c *result.Cell, v time.Duration) { c.RTT = v })
	all = vary(all, o.Faults, func(c *result.Cell, v result.Fault) { c.Fault = v })
	all = vary(all, o.Scenarios, func(c *result.Cell, v Scenario) { c.Scenario = v })
	all = vary(all, o.Concurrency, func(c *result.Cell, v int) { c.Concurrency = v })
	all = slices.DeleteFunc(all, func(c result.Cell) bool { return c.Fault.OfClients() && c.Scenario != Contended })
	all = vary(all, o.Hold, func(c *result.Cell, v time.Duration) { c.Hold = v })
	all = o.ofScenario(all)
	for i, c := range all {
		if c.RTT > 0 || c.Fault != result.NoFault {
			all[i].Jitter = o.Jitter
		}
	}
	return all
}

// ofScenario varies cells by the options that only their scenario has.
func (o Options) ofScenario(cells []result.Cell) []result.Cell {
	var all []result.Cell
	for _, c := range cells {
		these := []result.Cell{c}
		if c.Scenario == Contended && len(o.Crowds) > 0 {
			these[0].Once, these[0].TTL = o.Once, o.TTL
			these = vary(these, o.Crowds, withCrowds)
		} else if c.Scenario == Contended {
			these[0].Once, these[0].TTL = o.Once, o.TTL
			these = vary(these, o.Processes, func(c *result.Cell, v int) { c.Processes = v })
			these = vary(these, o.Keys, func(c *result.Cell, v int) { c.Keys = v })
		} else if c.Scenario == Uncontended {
			these = vary(these, o.Clients, func(c *result.Cell, v int) { c.Clients = v })
			these = vary(these, o.Rate, func(c *result.Cell, v int) { c.Rate = v })
		}
		all = append(all, these...)
	}
	return all
}

// vary has each cell once with every value.
func vary[T any](cells []result.Cell, values []T, set func(*result.Cell, T)) []result.Cell {
	var all []result.Cell
	for _, c := range cells {
		for _, v := range values {
			set(&c, v)
			all = append(all, c)
		}
	}
	return all
}

// The time of a cell beside its window and its warm-up: to connect, of which most
// libraries do much for each worker and node, and to end.
const (
	overhead  = 150 * time.Millisecond
	perWorker = 100 * time.Microsecond
)

// estimate is the approximate time that the options take.
func (o Options) estimate() time.Duration {
	var all time.Duration
	for _, c := range o.cells() {
		if c.Scenario.OfMany() {
			each := 2*rest + 40*time.Microsecond*time.Duration(c.Concurrency)
			if c.Scenario == Kept {
				each += o.TTL / 3
			}
			all += each * time.Duration(len(o.Drivers)*o.Rounds)
			continue
		}
		each := o.Timing.Warmup + o.Timing.Window + overhead + perWorker*time.Duration(c.Concurrency*c.Nodes*max(c.Processes, 1)) + gathering*time.Duration(c.Processes)
		if c.Fault != result.NoFault {
			each += o.Timing.Warmup
		}
		all += each*time.Duration(len(o.Drivers)*o.Rounds) + c.RTT*time.Duration(c.Nodes*(pings+1)*o.Rounds)
	}
	return all
}
