package harness

import (
	"errors"
	"slices"
)

// usual is the cell from which each sweep goes in one direction.
var usual = Cell{Scenario: Uncontended, Concurrency: 64, Nodes: 5, Fault: NoFault, KeyLen: DefaultKeyLen}

// grow sets what the sweeps go through. Lists that were given are kept.
func (o *Options) grow(given map[string]bool) error {
	if len(o.Nodes) > 0 {
		return errors.New("-growth starts its own masters: without -nodes")
	}
	if !given["n"] {
		o.Masters = []int{1, 3, 5, 7, 9}
	}
	if slices.Max(o.Masters) < usual.Nodes {
		return errors.New("-growth: -n must reach five")
	}
	if !given["c"] {
		o.Concurrency = []int{1, 8, 64, 512, 2048}
	}
	if !given["keylen"] {
		o.KeyLen = []int{8, DefaultKeyLen, 64, 256, 1024}
	}
	if !given["procs"] {
		o.Procs = []int{1, 2, 4, 8, 16}
	}
	o.Scenarios, o.RTT, o.Faults, o.Client = []Scenario{usual.Scenario}, nil, nil, true
	return nil
}

// sweeps lists the cells of -growth: one thing at a time is not as usual.
func (o Options) sweeps() []Cell {
	var all []Cell
	vary := func(values []int, set func(*Cell, int)) {
		for _, v := range values {
			c := usual
			set(&c, v)
			all = append(all, c)
		}
	}
	vary(o.Masters, func(c *Cell, n int) { c.Nodes = n })
	vary(o.Concurrency, func(c *Cell, n int) { c.Concurrency = n })
	vary(o.KeyLen, func(c *Cell, n int) { c.KeyLen = n })
	vary(o.Procs, func(c *Cell, n int) { c.Procs = n })
	return unique(all)
}
