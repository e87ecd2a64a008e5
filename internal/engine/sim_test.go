package engine

import (
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/testkit"
)

// seeds is how many histories a test runs: n, 10,000 with REDLOCK_LONG=1, and few with the race
// detector, which finds nothing in one thread.
func seeds(n int) int {
	switch {
	case testkit.Long():
		return 10_000
	case testkit.Race:
		return n / 25
	}
	return n
}

// TestHistories is contention with all faults that the algorithm must survive. Some of what it
// checks only a defect of the product can show; internal/mutants lists such defects, with a
// smaller test for each.
func TestHistories(t *testing.T) {
	t.Parallel()
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // worlds are small and many
	events, acquired, extended := 0, 0, 0
	var sum counts
	n := seeds(500)
	for seed := range uint64(n) {
		r := inModel()
		r.shrinks = seed%2 == 1
		w := newWorld(seed, r)
		w.run()
		if w.check.failed() {
			t.Fatal(w.report())
		}
		events += len(w.history)
		sum.add(&w.check.counts)
		acquired += w.check.acquiredLocks()
		for _, l := range w.check.locks {
			if slices.Max(l.renewed[:]) > 0 {
				extended++
			}
		}
	}
	t.Logf("%d histories, %d events, %d locks acquired, %d extended; %+v", n, events, acquired, extended, sum)
	require.Greater(t, acquired, n, "hardly anything was acquired")
	require.Greater(t, extended, n/10, "hardly anything was extended")
	for _, rare := range []int{sum.renewals, sum.discards} {
		require.Greater(t, rare, n/50, "something hardly ever happened")
	}
}

// forgetting is a model in which masters forget their keys when they restart.
func forgetting() rules {
	r := inModel()
	r.name, r.forgets, r.guard, r.brief = "forgetting", true, true, true
	r.faults = append(r.faults, restart, restart, restart)
	return r
}

// TestRestartGuard: masters that forget their keys when they restart break the algorithm (see
// "forgets" in broken), unless each is without a vote until what it forgot has expired.
func TestRestartGuard(t *testing.T) {
	t.Parallel()
	acquired, n := 0, seeds(150)
	for seed := range uint64(n) {
		w := newWorld(seed, forgetting())
		w.run()
		if w.check.failed() {
			t.Fatal(w.report())
		}
		acquired += w.check.acquiredLocks()
	}
	require.Greater(t, acquired, n, "hardly anything was acquired")
}

// broken are the rules under which something must go wrong, and what.
var broken = []struct {
	kind  string
	rules rules
}{
	// Outside the model.
	{"overlap", rules{name: "forgets", forgets: true, faults: []fault{restart}}},
	{"overlap", rules{name: "overstays", overstays: true}},
	{"overlap", rules{name: "halves", halves: true, nodes: 5}},
	// Bugs put in on purpose.
	{"overlap", rules{name: "liar", liar: true}},
	{"overlap", rules{name: "blindRelease", blindRelease: true}},
	{"vote", rules{name: "blindExtend", blindExtend: true, many: true, nodes: 3}},
	{"order", rules{name: "backwards", backwards: true}},
	{"orphan", rules{name: "noCleanup", noCleanup: true}},
	{"stuck", rules{name: "rudeDialer", rudeDialer: true, faults: []fault{loseConnection}}},
	{"leak", rules{name: "loseFail", loseFail: true, faults: []fault{loseConnection}}},
	{"vote", rules{name: "crossed", crossed: true}},
	{"once", rules{name: "deafCancel", deafCancel: true}},
	{"ttl", rules{name: "eternal", eternal: true}},
	{"leak", rules{name: "tampers", tampers: true}},
	{"foreign", rules{name: "contagious", contagious: true, faults: []fault{restrict}}},
	{"orphan", rules{name: "forgetful", forgetful: true, faults: []fault{loseConnection}}},
}

// TestTheCheckerSees: a check that cannot fail is worth nothing. Each of these
// worlds has one thing wrong with it, and some history must show it as what it is.
func TestTheCheckerSees(t *testing.T) {
	for _, c := range broken {
		t.Run(c.rules.name, func(t *testing.T) {
			t.Parallel()
			others := map[string]int{}
			for seed := range uint64(3000) {
				w := newWorld(seed, c.rules)
				w.run()
				if w.check.kind == c.kind {
					t.Logf("seed %d: %s; before that: %v", seed, w.check.text, others)
					return
				}
				others[w.check.kind]++
			}
			t.Errorf("no %s in 3000 histories, but %v", c.kind, others)
		})
	}
}

// TestReplay runs the history that a failure has named.
func TestReplay(t *testing.T) {
	s := os.Getenv("SIM_SEED")
	if s == "" {
		t.Skip("SIM_SEED names no history")
	}
	seed, err := strconv.ParseUint(s, 10, 64)
	require.NoError(t, err)
	r := inModel()
	r.shrinks = seed%2 == 1
	if r.name = forgetting().name; r.name == os.Getenv("SIM_RULES") {
		r = forgetting()
	}
	for _, c := range broken {
		if c.rules.name == os.Getenv("SIM_RULES") {
			r = c.rules
		}
	}
	w := newWorld(seed, r)
	w.run()
	for _, e := range w.history {
		t.Log(e)
	}
	if w.check.failed() {
		t.Fatal(w.report())
	}
}

// TestSeedsReplay: the same seed gives the same history, to the last event, and another seed
// another history.
func TestSeedsReplay(t *testing.T) {
	t.Parallel()
	history := func(seed uint64) []entry {
		w := newWorld(seed, inModel())
		w.run()
		return w.history
	}
	for seed := range uint64(min(seeds(50), 500)) {
		a, b := history(seed), history(seed)
		require.True(t, slices.Equal(a, b), "seed %d gives two histories", seed)
		require.False(t, slices.Equal(a, history(seed+1e6)), "seeds %d and %d give the same history", seed, seed+uint64(1e6))
	}
}
