package engine

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/testkit/manual"
	"github.com/redlock-go/redlock/quorum"
)

// A world is everything a history needs: a clock, a seed, masters, clients, and
// the events that are still to come. One goroutine runs it, in an order that
// follows from the seed alone. No real time passes and nothing sleeps.
type world struct {
	*rand.Rand
	seed    uint64
	clock   *manual.Clock // true time; masters and clients have their own rates
	events  eventHeap
	serial  uint64
	turn    int // events so far
	history []entry
	masters []*master
	clients []*client
	quorum  *quorum.Config // of all clients; nil is a majority
	rules   rules
	check   checker
	theme   int  // which fault happens again and again, counted from 1; 0: all of them
	ending  bool // no new attempts; faults are over
}

// entry is one thing that happened. Two runs of a seed have equal histories.
type entry struct {
	at      time.Duration
	what    string
	a, b, c int
}

func (e entry) String() string {
	return fmt.Sprintf("%12v %-14s %3d %3d %3d", e.at, e.what, e.a, e.b, e.c)
}

type event struct {
	at     time.Duration
	serial uint64
	run    func()
}

// eventHeap gives the earliest event first, and of those the one that was
// scheduled first.
type eventHeap []event

func (h eventHeap) Len() int      { return len(h) }
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].serial < h[j].serial
}
func (h *eventHeap) Push(e any) { *h = append(*h, e.(event)) }

func (h *eventHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = event{}
	*h = (*h)[:last]
	return e
}

func newWorld(seed uint64, r rules) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 0x5ed10c)), seed: seed, clock: new(manual.Clock), rules: r}
	w.check.world = w
	nodes := []int{1, 2, 3, 3, 3, 4, 5, 5, 7}[w.IntN(9)]
	if r.nodes > 0 {
		nodes = r.nodes
	}
	w.check.keys = 1 + w.IntN(maxKeys)
	for i := range nodes {
		w.masters = append(w.masters, newMaster(w, i))
	}
	if seed%4 == 3 && nodes > 1 && r.nodes == 0 && !r.halves {
		w.quorum = someJoint(rand.New(rand.NewPCG(seed, 1)), nodes)
	}
	for i := range 2 + w.IntN(3) {
		w.clients = append(w.clients, newClient(w, i))
	}
	return w
}

// someJoint is two lists of nodes, which may share some.
func someJoint(r *rand.Rand, nodes int) *quorum.Config {
	var lists [2]quorum.Set
	for node := range nodes {
		in := 1 + r.IntN(3)
		lists[0] |= quorum.Set(in&1) << node
		lists[1] |= quorum.Set(in>>1) << node
	}
	for i := range lists {
		if lists[i] == 0 {
			lists[i] = 1
		}
	}
	return quorum.Joint(quorum.Majority(lists[0]), quorum.Majority(lists[1]))
}

func (w *world) now() time.Duration { return w.clock.Now() }

// after has f run in d.
func (w *world) after(d time.Duration, f func()) {
	w.serial++
	heap.Push(&w.events, event{w.now() + d, w.serial, f})
}

func (w *world) note(what string, a, b, c int) {
	w.history = append(w.history, entry{at: w.now(), what: what, a: a, b: b, c: c})
}

// between is a random duration, from lo up to but without hi.
func (w *world) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(w.Int64N(int64(hi-lo)))
}

func (w *world) chance(percent int) bool { return w.IntN(100) < percent }

// step lets the next event happen, if there is one not later than until.
func (w *world) step(until time.Duration) bool {
	if len(w.events) == 0 || w.events[0].at > until || w.check.failed() {
		return false
	}
	e := heap.Pop(&w.events).(event)
	if e.at > w.now() {
		w.clock.Advance(e.at - w.now())
	}
	w.turn++
	e.run()
	for _, c := range w.clients {
		w.check.atRest(c)
	}
	return true
}

// maxHistory bounds a run that does not come to an end.
const maxHistory = 200_000

// run is one whole history: faults and contention, then calm.
func (w *world) run() {
	for _, c := range w.clients {
		c.start()
	}
	length := w.between(10*time.Millisecond, 110*time.Millisecond)
	if n := len(w.rules.faults); n > 0 && w.chance(50) {
		w.theme = 1 + w.IntN(n)
	}
	w.scheduleFault(length)
	for w.step(length) {
	}
	w.ending = true
	for _, m := range w.masters {
		m.heal()
	}
	for w.step(length + time.Minute) {
		if len(w.history) > maxHistory {
			w.check.fail("stuck", "the history does not end")
		}
	}
	if len(w.events) > 0 {
		w.check.fail("leak", "something still goes on long after the end")
	}
	if !w.check.failed() {
		w.check.atEnd()
	}
}

// report is the text that a failed history prints.
func (w *world) report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\nreplay: SIM_SEED=%d SIM_RULES=%s go test ./internal/engine -run TestReplay\n",
		w.check.kind, w.check.text, w.seed, w.rules.name)
	from := max(0, len(w.history)-60)
	for _, e := range w.history[from:] {
		fmt.Fprintln(&b, e)
	}
	return b.String()
}

// skewed is a clock that runs at its own rate, within what drift allows for.
type skewed struct {
	world  *world
	rate   float64
	offset time.Duration
}

func (w *world) newClock() *skewed {
	return &skewed{w, 1 + (w.Float64()-0.5)*0.008, w.between(0, time.Hour)}
}

func (s *skewed) Now() time.Duration {
	return s.offset + time.Duration(float64(s.world.now())*s.rate)
}

// truth turns a reading of this clock into true time.
func (s *skewed) truth(reading time.Duration) time.Duration {
	return time.Duration(float64(reading-s.offset) / s.rate)
}
