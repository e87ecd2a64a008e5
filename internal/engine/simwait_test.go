package engine

import (
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// calm is a world of waiters in which nothing goes wrong.
func calm() rules { return rules{name: "calm", lines: true, calm: true} }

// lined is a world of waiters with one thing wrong, and calm where there are no faults.
func lined(r rules) rules {
	r.lines, r.calm = true, len(r.faults) == 0
	return r
}

// evict deletes a key on all masters, as an operator may.
func evict(w *world) {
	key := w.IntN(w.check.keys)
	w.note("evict", key, 0, 0)
	for _, m := range w.masters {
		if h := m.get(key); h.lock != 0 {
			w.check.lock(h.lock).evicted = true
			w.check.released(m, h.lock)
			*h = held{}
			m.changedBy(nil, keyNames[key])
		}
	}
}

// pushy is one in which pushes are lost, late, doubled and forged, and nothing else is.
func pushy() rules {
	return rules{name: "pushy", lines: true, losesPushes: 25, doubles: 2, delaysPushes: true, brief: true, foreign: true,
		faults: []fault{forge, forge, overflow, unload}}
}

// rough is one with all faults.
func rough() rules {
	return rules{name: "rough", lines: true, losesPushes: 10, doubles: 1, delaysPushes: true, brief: true, foreign: true,
		faults: []fault{
			loseConnection, loseConnection, hang, slowDown, restart, outage, complain, stall, freeze, parts,
			closeClient, dieOrClose, forge, overflow, unload, refuse, refuse, eat,
		}}
}

// waitWorlds are the worlds of waiters, of which a seed chooses one.
var waitWorlds = []func() rules{calm, pushy, rough, rough}

func waitWorld(seed uint64) *world {
	return newWorld(seed, waitWorlds[seed%uint64(len(waitWorlds))]())
}

// dieOrClose ends a client.
func dieOrClose(w *world) {
	if w.chance(25) {
		w.clients[w.IntN(len(w.clients))].kill()
	}
}

// prepareLines chooses what is so in a world of waiters.
func (c *checker) prepareLines() {
	w := c.world
	if !w.rules.lines {
		return
	}
	c.keys = 1 + w.IntN(3)/2
	c.cancels = []int{0, 0, 10, 60}[w.IntN(4)]
	c.extends = []int{0, 10}[w.IntN(2)]
	if w.rules.extends {
		c.extends = 90
	}
	c.passes, c.brief = w.chance(70), w.chance(40)
	if w.chance(50) {
		c.oneTTL = w.between(50*time.Millisecond, time.Second)
	}
}

// TestLostIsNotPassedOn: keys that an operator deletes break the algorithm, but a lock that
// an extend has found lost is passed on to none.
func TestLostIsNotPassedOn(t *testing.T) {
	t.Parallel()
	lost := 0
	for seed := range uint64(seeds(t, 400)) {
		w := newWorld(seed, lined(rules{name: "evicts", extends: true, faults: []fault{evict}}))
		w.run()
		if w.check.kind == "pass" {
			t.Fatal(w.report())
		}
		for _, l := range w.check.locks {
			if l.lost {
				lost++
			}
		}
	}
	t.Logf("%d locks were lost", lost)
	require.NotZero(t, lost)
}

// TestWaiting is processes that wait for locks in line, woken by pushes, and hand them
// over: no two handles of a key are live at once, the waiters of a process get it in the
// order in which they came, and a lock that is free does not stay so while a process waits.
func TestWaiting(t *testing.T) {
	t.Parallel()
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	n := seeds(t, 1000)
	sums := map[string]*waitCounts{}
	events := 0
	for seed := range uint64(n) {
		w := waitWorld(seed)
		w.run()
		if w.check.failed() {
			t.Fatal(w.report())
		}
		if sums[w.rules.name] == nil {
			sums[w.rules.name] = new(waitCounts)
		}
		sums[w.rules.name].add(&w.check.waits)
		events += len(w.history)
	}
	var all waitCounts
	for name, sum := range sums {
		t.Logf("%s: %+v", name, *sum)
		all.add(sum)
	}
	require.Greater(t, all.granted, 10*n, "hardly anything was granted")
	require.Greater(t, all.passed, 2*n, "hardly anything was passed on")
	t.Logf("%d histories, %d events", n, events)
}
