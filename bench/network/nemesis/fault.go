// Package nemesis draws the faults of a run from its seed, and injects them.
package nemesis

import (
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/redlock-go/redlock/bench/network/history"
	"github.com/redlock-go/redlock/bench/network/wire"
)

// Scopes of a fault. Minority leaves each client a quorum of nodes that it does not touch; Majority does not. A fault that slows
// all links a little has none.
const (
	Minority = "minority"
	Majority = "majority"
)

// Fault is an act of the nemesis.
type Fault struct {
	history.Fault
	At, For time.Duration // from the start of the run
	Begin   func(Site) (end func())
}

// Site is the network with its hosts, as a fault acts on it.
type Site interface {
	Wire() *wire.Wire
	Link(host int, up bool)
	Signal(host int, s syscall.Signal)
	Kill(master int)
	Start(master int)
}

// Plan is what the faults are drawn from. Hosts are given by their numbers. A server of the front end is a client of the masters.
type Plan struct {
	Seed    uint64
	Mix     string
	Length  time.Duration
	Scale   float64
	Groups  [][]int // of masters: a fault is of one group
	Clients []int
	Gap     time.Duration // between faults at least
	AtMost  int           // of the masters are killed at once
}

// effect has an effect in force.
func effect(e *wire.Effect) func(Site) func() {
	return func(s Site) func() {
		s.Wire().Begin(e)
		return func() { s.Wire().End(e) }
	}
}

// flapping has an effect in force by turns.
func flapping(e *wire.Effect, period time.Duration) func(Site) func() {
	return func(s Site) func() {
		s.Wire().Begin(e)
		stop, flips := make(chan struct{}), sync.WaitGroup{}
		flips.Go(func() { history.Every(period/2, stop, e.Flip) })
		return func() { close(stop); flips.Wait(); s.Wire().End(e) }
	}
}

// pair does something to each host, and undoes it.
func pair(hosts []int, do, undo func(s Site, host int)) func(Site) func() {
	return func(s Site) func() {
		for _, h := range hosts {
			do(s, h)
		}
		return func() {
			for _, h := range hosts {
				undo(s, h)
			}
		}
	}
}

// What is done to hosts.
func stopped(hosts []int) func(Site) func() {
	return pair(hosts, func(s Site, h int) { s.Signal(h, syscall.SIGSTOP) }, func(s Site, h int) { s.Signal(h, syscall.SIGCONT) })
}

func unlinked(hosts []int) func(Site) func() {
	return pair(hosts, func(s Site, h int) { s.Link(h, false) }, func(s Site, h int) { s.Link(h, true) })
}

func killed(masters []int) func(Site) func() {
	return pair(masters, Site.Kill, Site.Start)
}

// Inject injects the faults, and returns when all are over.
func Inject(s Site, faults []*Fault, start history.Time) {
	done := make(chan struct{})
	for _, f := range faults {
		go func() {
			history.Sleep(start.Add(f.At))
			f.From = history.Now()
			end := f.Begin(s)
			history.Sleep(start.Add(f.At + f.For))
			end()
			f.To = history.Now()
			done <- struct{}{}
		}()
	}
	for range faults {
		<-done
	}
}

// Faults draws the faults of a plan: mostly one at a time, a quarter beside another.
func Faults(p Plan) ([]*Fault, error) {
	d := &draw{Plan: p, rng: rand.New(rand.NewPCG(p.Seed, 0x6e656d65736973))}
	kinds, err := kindsOf(p.Mix)
	if err != nil || len(kinds) == 0 {
		return nil, err
	}
	var faults []*Fault
	var bag []int
	next := func() *Fault {
		if len(bag) == 0 {
			bag = d.rng.Perm(len(kinds))
		}
		f := d.fault(kinds[bag[0]])
		bag = bag[1:]
		return f
	}
	for at := 2 * time.Second; ; {
		f := next()
		f.At, f.Alone = at, true
		if f.At+f.For > p.Length {
			return faults, nil
		}
		faults = append(faults, f)
		end := f.At + f.For
		if d.rng.IntN(4) == 0 {
			g := next()
			g.At = f.At + time.Duration(d.rng.Int64N(int64(f.For)))
			if g.At+g.For < p.Length && g.Kind != f.Kind {
				f.Alone = false
				faults = append(faults, g)
				end = max(end, g.At+g.For)
			}
		}
		at = end + p.Gap + time.Duration(d.rng.IntN(2000))*time.Millisecond
	}
}
