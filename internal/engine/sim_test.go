package engine

import (
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// seeds is how many histories a test runs; SIM_SEEDS multiplies it.
func seeds(t *testing.T, n int) int {
	if raceEnabled {
		n /= 25
	}
	if s := os.Getenv("SIM_SEEDS"); s != "" {
		times, err := strconv.Atoi(s)
		require.NoError(t, err)
		n *= times
	}
	return n
}

// TestHistories is contention with all faults that the algorithm must survive. Some
// of what it checks only a defect of the product can show. These were put in for a
// moment, and were found within 2,500 histories:
//
//   - an extend is repeated behind a later one of the same lock: "ttl";
//   - a batch leaves the in-flight window before any node has replied: "flood";
//   - a merged call that is refused is not repeated key by key: "orphan";
//   - a queued release whose context ends goes to the end of the queue: "order";
//   - a release in flight whose context ends is sent again: "order";
//   - submitters leave it to callbacks to drive without a deadline: "stuck".
func TestHistories(t *testing.T) {
	t.Parallel()
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // worlds are small and many
	events, acquired, extended := 0, 0, 0
	var sum counts
	n := seeds(t, 2500)
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
		for _, l := range w.check.locks {
			if l.until > 0 {
				acquired++
			}
			if slices.Max(l.renewed[:]) > 0 {
				extended++
			}
		}
	}
	t.Logf("%d histories, %d events, %d locks acquired, %d extended; %+v", n, events, acquired, extended, sum)
	require.Greater(t, acquired, n, "hardly anything was acquired")
	require.Greater(t, extended, n/10, "hardly anything was extended")
	require.Greater(t, sum.kept, n/2, "hardly anything was kept alive")
	require.Greater(t, sum.renewals, n, "hardly anything was renewed")
	for _, rare := range []int{sum.sets, sum.attached, sum.reads, sum.discards, sum.queries} {
		require.Greater(t, rare, n/50, "something hardly ever happened")
	}
}

// forgetting is a model in which masters forget their keys when they restart.
func forgetting() rules {
	r := inModel()
	r.name, r.forgets, r.brief, r.asks, r.holders = "forgetting", true, true, false, 0
	r.faults = append(r.faults, restart, restart, restart)
	return r
}

// TestRestartGuard: masters that forget their keys when they restart break the
// algorithm, unless each is without a vote until what it forgot has expired.
func TestRestartGuard(t *testing.T) {
	t.Parallel()
	r := forgetting()
	for _, guard := range []bool{true, false} {
		r.guard = guard
		acquired, overlaps := 0, 0
		n := seeds(t, 1500)
		for seed := range uint64(n) {
			w := newWorld(seed, r)
			w.run()
			if w.check.failed() && (guard || w.check.kind != "overlap") {
				t.Fatal(w.report())
			}
			if w.check.failed() {
				overlaps++
			}
			for _, l := range w.check.locks {
				if l.until > 0 {
					acquired++
				}
			}
		}
		t.Logf("guard %v: %d histories, %d locks acquired, %d overlaps", guard, n, acquired, overlaps)
		require.Greater(t, acquired, n, "hardly anything was acquired")
		if !guard && !raceEnabled {
			require.NotZero(t, overlaps, "the guard guards against nothing")
		}
	}
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
	{"vote", rules{name: "blindExtend", blindExtend: true}},
	{"order", rules{name: "backwards", backwards: true}},
	{"orphan", rules{name: "noCleanup", noCleanup: true}},
	{"stuck", rules{name: "rudeDialer", rudeDialer: true, faults: []fault{loseConnection}}},
	{"leak", rules{name: "loseFail", loseFail: true, faults: []fault{loseConnection}}},
	{"vote", rules{name: "crossed", crossed: true}},
	{"once", rules{name: "deafCancel", deafCancel: true}},
	{"ttl", rules{name: "eternal", eternal: true}},
	{"leak", rules{name: "tampers", tampers: true}},
	{"foreign", rules{name: "contagious", contagious: true, faults: []fault{restrict}}},
	{"stuck", rules{name: "unwatched", unwatched: true, wild: true}},
	{"live", rules{name: "noDeadline", noDeadline: true, holders: 2, faults: []fault{hang, outage}}},
	{"live", rules{name: "deafKeeper", deafKeeper: true, holders: 2}},
	{"lost", rules{name: "neverRenews", neverRenews: true, holders: 2}},
	{"extend", rules{name: "renewsStopped", renewsStopped: true, holders: 2}},
	{"ttl", rules{name: "countsFailed", countsFailed: true, holders: 2, faults: []fault{hang, outage}}},
	{"overlap", rules{name: "someHeld", someHeld: true, holders: 2}},
	{"fence", withFences(rules{name: "rejoinsAtOnce", rejoinsAtOnce: true, nodes: 3, faults: []fault{tear, tear, tear, step}})},
	{"fence", withFences(rules{name: "votesAlways", votesAlways: true, faults: []fault{evictSet, slowDown}})},
	{"second", withFences(rules{name: "learnsNothing", learnsNothing: true})},
	{"second", withFences(rules{name: "sameBlock", sameBlock: true})},
	{"query", rules{name: "confuses", confuses: true, asks: true}},
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
		r.guard = true
	}
	if rules := fenced(); rules.name == os.Getenv("SIM_RULES") {
		r = rules
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

// TestSeedsReplay: the same seed gives the same history, to the last event.
func TestSeedsReplay(t *testing.T) {
	t.Parallel()
	for seed := range uint64(seeds(t, 150)) {
		a, b := newWorld(seed, inModel()), newWorld(seed, inModel())
		a.run()
		b.run()
		if !slices.Equal(a.history, b.history) {
			at := 0
			for at < len(a.history) && at < len(b.history) && a.history[at] == b.history[at] {
				at++
			}
			t.Fatalf("seed %d: two histories of %d and %d events, which part at %d", seed, len(a.history), len(b.history), at)
		}
		if c := newWorld(seed+1e6, inModel()); func() bool { c.run(); return slices.Equal(a.history, c.history) }() {
			t.Fatalf("seed %d: another seed gives the same history", seed)
		}
	}
}
