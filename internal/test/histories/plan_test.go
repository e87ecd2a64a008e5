package histories

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
)

// maxTTL bounds the TTLs of all clients, and so their quarantines.
const maxTTL = 2 * time.Second

type plan struct {
	seed    uint64
	nodes   []fakeredis.Options
	deny    []string // forbidden on all nodes
	keys    []string
	fenced  bool
	busy    bool // its clients are
	permits bool // the keys are those of a semaphore, for callers of any, or all
	shares  bool // most callers share their locks
	clients []clientPlan
	foreign int      // pollers of a foreign kind
	changes *changes // of nodes; nil: all clients have all nodes
	stir    stir

	free, alone time.Duration // how long a lock may be free on a quorum and wanted; the same where no set wants it

	troubles int           // goroutines that do faults
	faulty   time.Duration // for how long they do
	calm     time.Duration // after them
}

type clientPlan struct {
	callers  int
	sessions int
	settings redlock.Config
	noPushes bool // it may not track keys
	busy     bool // its callers want the first key again and again
	stalls   bool // its user code blocks now and then, for seconds
	vain     bool // it cannot win: all nodes are in quarantine for it
}

type stir struct {
	operators int  // who free keys by hand
	outages   bool // of all nodes at once
	passers   int  // callers of each client who want the first key for a moment, again and again
	brief     bool // half of the callers want locks for less than half a second
}

func newStir(seed uint64) (s stir) {
	rng := newRandom(seed, 0x571)
	if rng.IntN(3) == 0 {
		s.operators = 1 + rng.IntN(2)
	}
	s.outages, s.brief = rng.IntN(3) == 0, rng.IntN(2) == 0
	if rng.IntN(4) == 0 {
		s.passers = 1 + rng.IntN(8)
	}
	if s.operators > 0 { // else hardly any caller waits when a freed lock is given back, for less than is left of it
		s.passers, s.brief = 3+rng.IntN(6), true
	}
	return s
}

// settle bounds the time from the last fault until all nodes have a vote.
const settle = maxTTL + 3*time.Second

func newPlan(seed uint64) *plan {
	rng := newRandom(seed, 0x9a7)
	p := &plan{seed: seed, free: freeFor, alone: aloneFor, troubles: rng.IntN(3), fenced: rng.IntN(4) == 0}
	for range 3 + 2*rng.IntN(2) {
		p.nodes = append(p.nodes, fakeredis.Options{Flavor: fakeredis.Flavor(rng.IntN(3))})
	}
	switch rng.IntN(8) {
	case 0:
		p.deny = []string{"CLIENT|TRACKING"}
	case 1:
		if !p.fenced {
			p.deny = []string{"ZADD"} // of the queue
		}
	}
	for i := range 1 + rng.IntN(4) {
		p.keys = append(p.keys, fmt.Sprint("k", i))
	}
	p.busy = rng.IntN(4) == 0
	for range 2 + rng.IntN(3) {
		c := clientPlan{
			callers: 1 + rng.IntN(4), sessions: 1 + rng.IntN(3), settings: settings(rng),
			noPushes: rng.IntN(6) == 0, busy: p.busy,
		}
		c.settings.Fenced = p.fenced
		p.clients = append(p.clients, c)
	}
	if rng.IntN(4) == 0 {
		p.foreign = 1
	}
	p.calm = 4*time.Second + rng.N(4*time.Second)
	if p.troubles > 0 {
		p.faulty = 3*time.Second + rng.N(5*time.Second)
		p.calm += settle - 2*time.Second
	}
	if !p.fenced && rng.IntN(4) == 0 {
		c := &p.clients[0]
		c.vain, c.settings.MaxTTL = true, time.Hour
	}
	p.stir = newStir(seed)
	p.stir.outages = p.stir.outages && p.troubles > 0
	for i := range p.clients {
		p.clients[i].stalls = newRandom(seed, uint64(0x57a+i)).IntN(6) == 0
	}
	return p
}

func settings(rng random) (c redlock.Config) {
	c.MaxTTL = maxTTL
	c.NoHandOver = rng.IntN(3) == 0
	knobs.Of(&c).Scripted = rng.IntN(3) == 0
	if rng.IntN(4) == 0 {
		c.Retry.Attempts = 1 + rng.IntN(5)
	}
	if rng.IntN(3) == 0 {
		c.Retry.Min = 5*time.Millisecond + rng.N(25*time.Millisecond)
		c.Retry.Max = c.Retry.Min + rng.N(100*time.Millisecond)
	}
	if rng.IntN(4) == 0 {
		c.MaxWaiting = 4 + rng.IntN(6) // the keys of a set, or more
	}
	if rng.IntN(4) == 0 {
		c.Name = "host"
	}
	return c
}

func (p *plan) String() string {
	return fmt.Sprintf("%d nodes, %d keys, deny %v, fenced %v, %d faults for %v, calm for %v, %d foreign, %v; changes %v; clients %v",
		len(p.nodes), len(p.keys), p.deny, p.fenced, p.troubles, p.faulty, p.calm, p.foreign, p.stir, p.changes, p.clients)
}

func (c clientPlan) String() string {
	s := c.settings
	return fmt.Sprintf("{%d callers, %d sessions, busy %v, vain %v, no pushes %v, stalls %v, no hand-over %v, scripted %v, %+v, waiting %d, holder %q}",
		c.callers, c.sessions, c.busy, c.vain, c.noPushes, c.stalls, s.NoHandOver, knobs.Of(&s).Scripted, s.Retry, s.MaxWaiting, s.Name)
}

func (s stir) String() string {
	return fmt.Sprintf("%d operators, outages %v, %d who come and go, brief %v", s.operators, s.outages, s.passers, s.brief)
}

type random struct{ *rand.Rand }

func newRandom(seed, stream uint64) random { return random{rand.New(rand.NewPCG(seed, stream))} }

func (r random) N(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(r.Int64N(int64(d)))
}
