package harness

import (
	"fmt"
	"runtime"
	"strings"
	"time"
)

// Cell is one point of what a run goes through: one load on one kind of
// network.
type Cell struct {
	Scenario    Scenario
	Concurrency int
	Nodes       int
	RTT         time.Duration // added to every node
	Fault       Fault         // of the first node
	KeyLen      int
	Procs       int // GOMAXPROCS, or 0 to leave it alone
}

// cells lists every cell that the options ask for, in the order in which they
// run: concurrency changes first, as the tables of a scenario are read.
func (o Options) cells() []Cell {
	if o.Growth {
		return o.sweeps()
	}
	if o.Client {
		return nil
	}
	var all []Cell
	for _, procs := range orOne(o.Procs, 0) {
		for _, nodes := range o.nodeCounts() {
			for _, keyLen := range o.KeyLen {
				for _, rtt := range orOne(o.RTT, 0) {
					for _, fault := range orOne(o.Faults, NoFault) {
						for _, scenario := range o.Scenarios {
							for _, c := range o.Concurrency {
								all = append(all, Cell{scenario, c, nodes, rtt, fault, keyLen, procs})
							}
						}
					}
				}
			}
		}
	}
	return all
}

// orOne is all, or the only choice if there is none.
func orOne[T any](all []T, only T) []T {
	if len(all) == 0 {
		return []T{only}
	}
	return all
}

// nodeCounts lists how many nodes the cells have.
func (o Options) nodeCounts() []int {
	if len(o.Nodes) > 0 {
		return []int{len(o.Nodes)}
	}
	return o.Masters
}

// title names a cell by everything that the options let vary, and by what is
// not as usual.
func (c Cell) title(o Options) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, concurrency %d", c.Scenario, c.Concurrency)
	if len(o.nodeCounts()) > 1 {
		fmt.Fprintf(&b, ", N = %d", c.Nodes)
	}
	if len(o.KeyLen) > 1 {
		fmt.Fprintf(&b, ", keys of %d bytes", c.KeyLen)
	}
	if c.RTT > 0 || len(o.RTT) > 1 {
		fmt.Fprintf(&b, ", round trip +%v", c.RTT)
		if c.RTT > 0 && o.Jitter > 0 {
			fmt.Fprintf(&b, " to +%v", c.RTT+o.Jitter)
		}
	}
	if c.Fault != NoFault {
		fmt.Fprintf(&b, ", node 1 %s", c.Fault.describe())
	} else if len(o.Faults) > 1 {
		b.WriteString(", all nodes well")
	}
	if c.Procs > 0 {
		fmt.Fprintf(&b, ", GOMAXPROCS %d of %d cores", c.Procs, runtime.NumCPU())
	}
	return b.String()
}
