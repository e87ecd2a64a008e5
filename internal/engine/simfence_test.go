package engine

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/internal/fencing"
	"github.com/redlock-go/redlock/quorum"
)

// simFence makes a client fenced. What that of package group does with locks and a
// goroutine, this does with events. What it decides, package fencing does.
type simFence struct {
	client *client
	world  *world
	fleet  fencing.Fleet
	encode *command.Fence
	wall   time.Duration // how far its clock is off

	forgotten, doubted uint64
	inits              uint64 // nodes that are given an operator's floor
	medic              simMedic
}

const (
	blockSize   = 64 // tokens
	fenceTries  = 4  // attempts in a row that follow refusals of the number alone
	askTimeout  = 60 * time.Millisecond
	medicEvents = 3 * time.Second // for so long behind the faults it goes on
)

func newSimFence(c *client) *simFence {
	w := c.world
	f := &simFence{client: c, world: w, wall: w.between(-3*time.Hour, 3*time.Hour)}
	if w.chance(30) {
		f.wall = w.between(-time.Second, time.Second)
	}
	n := len(w.masters)
	f.fleet = fencing.Fleet{Nodes: n, Quorum: quorum.Size(n), Quarantine: longestHeld + quorum.Drift(longestHeld)}
	if w.rules.rejoinsAtOnce {
		f.fleet.Quarantine = 0
	}
	f.encode = &command.Fence{Set: fenceSet}
	f.medic = simMedic{fence: f, cases: map[int]*fencing.Treatment{}}
	return f
}

// readers is how many others a node learns from that has forgotten.
func (f *simFence) readers() int { return f.fleet.Nodes - f.fleet.Quorum + 1 }

// up begins a node's life on a new connection.
func (f *simFence) up(node int) {
	if f == nil {
		return
	}
	fleet := f.client.fleet
	f.encode.Me[node] = []byte(fenceFleet + ":" + fleet.links[node].run)
	fleet.SetForm(node, conn.Form(command.Form(fleet.Form(node)).ForNode(node)))
	f.forgotten |= 1 << node
	f.doubted |= 1 << node
	f.medic.ring()
}

// told notes that a node has no vote.
func (f *simFence) told(node int, a fencing.Answer) {
	if a.Code == fencing.Foreign {
		f.world.check.failf("foreign", "a node belongs to the fleet %s", a.Text)
	}
	if a.Code != fencing.Amnesia {
		return
	}
	before := [2]uint64{f.forgotten, f.doubted}
	f.forgotten |= 1 << node
	if a.Text == "" {
		f.doubted |= 1 << node
	}
	if before != [2]uint64{f.forgotten, f.doubted} {
		f.medic.ring()
	}
}

func (f *simFence) micros() uint64 {
	return wallBase + uint64((f.world.now()+f.wall)/time.Microsecond)
}

// propose gives an acquire its tokens.
func (c *client) propose(op *Op, p *fencing.Proposal) {
	f := c.fence
	if f == nil {
		return
	}
	b, ok := p.Next(f.micros(), blockSize)
	if !ok {
		c.world.check.fail("fence", "there is no token left")
	}
	op.Block = b
	if f.world.rules.sameBlock && f.world.chance(30) && f.world.check.fences.lastBlock.First != 0 {
		op.Block = f.world.check.fences.lastBlock
	}
	f.world.check.fences.lastBlock = op.Block
}

// learn takes notice of what nodes told of an attempt that has not won, and returns whether
// another may follow at once, or none that is of use.
func (c *client) learn(op *Op, p *fencing.Proposal, err error) (again, closed bool) {
	f := c.fence
	if f == nil || err != ErrTaken && !errors.Is(err, ErrNoQuorum) {
		return false, false
	}
	var r fencing.Refusals
	for node := range f.fleet.Nodes {
		if o, _ := op.Tally.Outcome(node); o == quorum.Granted {
			r.Add(node, fencing.Answer{Code: fencing.OK})
		}
	}
	for _, t := range op.Told {
		r.Add(t.Node, t.Answer)
		if !f.world.rules.learnsNothing {
			p.Learn(t.Answer)
		}
	}
	switch advice := r.Advise(f.fleet); advice {
	case fencing.Misfit:
		f.world.check.fail("foreign", "a fleet of another configuration")
	case fencing.Closed:
		f.world.check.fences.closed++
		return false, true
	case fencing.Again:
		f.world.check.fences.again++
		return true, false
	}
	return false, false
}

// simMedic brings nodes back that have forgotten.
type simMedic struct {
	fence *simFence
	cases map[int]*fencing.Treatment
	asked int
	rung  bool
	runs  bool
	at    time.Duration // of its next turn, or 0
	query *Query        // that it waits for
	then  func(a fencing.Answer, ok bool)
	skip  int
	inits time.Duration // until then it does not begin anew
}

func (m *simMedic) ring() {
	m.rung = true
	if !m.runs {
		m.wake(0)
	}
}

// wake has a turn begin in d.
func (m *simMedic) wake(d time.Duration) {
	w, c := m.fence.world, m.fence.client
	at := w.now() + d + w.between(1, 100*time.Microsecond)
	if m.at != 0 && m.at <= at {
		return
	}
	m.at = at
	c.after(at-w.now(), func() {
		if m.at != 0 && m.at <= w.now() && !m.runs {
			m.at = 0
			m.turn()
		}
	})
}

func (m *simMedic) turn() {
	f := m.fence
	if f.client.dead || f.world.ending && f.world.now() > f.world.length+medicEvents {
		return
	}
	m.runs, m.rung = true, false
	m.treat(f.forgotten, time.Hour)
}

// treat goes on with the nodes that are left in this turn.
func (m *simMedic) treat(left uint64, pause time.Duration) {
	f := m.fence
	c := f.client
	for left != 0 {
		node := bits.TrailingZeros64(left)
		t := m.cases[node]
		if t == nil {
			t = &fencing.Treatment{Rejoin: fencing.BeginRejoin(f.fleet, node)}
			m.cases[node] = t
		}
		if f.doubted>>node&1 == 1 {
			f.doubted &^= 1 << node
			t.Doubt()
		}
		m.asked++
		r, wait := t.Next(c.clock.Now(), fmt.Sprintf("client%d.%d", c.index, m.asked), ^f.forgotten)
		if r.Verb != "" {
			m.ask(r, false, func(a fencing.Answer, ok bool) {
				t.Answered(r, a, ok, c.clock.Now())
				m.treat(left, pause)
			})
			return
		}
		left &^= 1 << node
		if t.Finished() {
			delete(m.cases, node)
			f.forgotten &^= 1 << node
			f.inits &^= 1 << node
		} else {
			pause = min(pause, wait)
		}
	}
	m.runs = false
	switch {
	case m.rung:
		m.wake(0)
	case pause < time.Hour:
		m.wake(max(pause*101/100, time.Millisecond))
	}
}

// ask makes a request, on the present connection alone.
func (m *simMedic) ask(r fencing.Request, load bool, then func(a fencing.Answer, ok bool)) {
	f := m.fence
	q := f.client.engine.Query(r.Node, askTimeout)
	q.Connection = f.client.fleet.Connection(r.Node)
	m.skip = 0
	if load {
		q.Buf, m.skip = command.AppendLoadMember(q.Buf)
	}
	var args []string
	switch r.Verb {
	case fencing.NoticeVerb:
		args = []string{r.Nonce}
	case fencing.RejoinVerb:
		if f.inits>>r.Node&1 == 1 { // the resources have seen what was granted, and no more
			r.Floor = fencing.InitFloor(f.world.check.fences.seen(), blockSize, 0, 0)
		}
		args = []string{r.Nonce, strconv.FormatUint(r.Floor, 10)}
	}
	var n int
	q.Buf, n = command.AppendMember(q.Buf, fenceSet, f.encode.Me[r.Node], string(r.Verb), args...)
	q.Replies = m.skip + n
	m.query = q
	m.then = func(fencing.Answer, bool) {
		err, said := q.Err, command.Said{}
		if err == nil {
			said = q.Said[m.skip]
		}
		q.Free()
		switch {
		case err == nil && said.Code == "NOSCRIPT" && !load:
			m.ask(r, true, then)
		case err != nil || said.Err != nil || said.Fence.Code == 0:
			then(fencing.Answer{}, false)
		default:
			f.told(r.Node, said.Fence)
			then(said.Fence, true)
		}
	}
	f.client.engine.Ask(q)
}

// poll lets the medic go on whose query was answered.
func (m *simMedic) poll() bool {
	if m.query == nil || len(m.query.Answered()) == 0 {
		return false
	}
	<-m.query.Answered()
	m.query = nil
	m.fence.client.after(m.fence.world.between(1, 50*time.Microsecond), func() {
		if !m.fence.client.dead {
			m.then(fencing.Answer{}, false)
		}
	})
	return true
}

// initialize is Group.InitFencing.
func (m *simMedic) initialize() {
	f := m.fence
	if now := f.world.now(); m.runs || m.inits > now {
		return // a request is under way, or it has just begun
	} else {
		m.inits = now + 500*time.Millisecond
	}
	for node := range f.fleet.Nodes {
		m.cases[node] = &fencing.Treatment{Rejoin: fencing.BeginInit(f.fleet, node)}
		f.forgotten |= 1 << node
		f.inits |= 1 << node
	}
	f.world.check.fences.initialized++
	m.ring()
}

// fenced is a world of fenced clients, most often beside plain ones.
func fenced() rules {
	return rules{name: "fenced", fenced: true, guard: true, brief: true, holders: 1, wild: true, faults: []fault{
		evictSet, evictSet, tear, tear, step, step, flushKeys, save, save, collect, initialize, initialize, restart, restart,
		loseConnection, loseConnection, hang, slowDown, slowDown, flushScripts, flushAll, flicker, restrict, parts, outage, complain, stall,
		speakNonsense, closeClient, freeze,
	}}
}

// withFences is a world of fenced clients with one thing wrong.
func withFences(r rules) rules {
	r.fenced, r.guard, r.brief = true, true, true
	return r
}

// TestFenced is fenced clients beside plain ones, with clocks that are hours off, and nodes
// that forget: tokens grow from grant to grant, no two locks share one, plain and fenced
// locks exclude each other, and nodes that have forgotten are brought back in time.
func TestFenced(t *testing.T) {
	t.Parallel()
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	n := 1000
	if os.Getenv("SIM_SEEDS") != "" {
		n = 2500
	}
	n = seeds(t, n)
	var sum fenceCounts
	events := 0
	for seed := range uint64(n) {
		w := newWorld(seed, fenced())
		w.run()
		if w.check.failed() {
			t.Fatal(w.report())
		}
		sum.add(&w.check.fences.fenceCounts)
		events += len(w.history)
	}
	t.Logf("%d histories, %d events; %+v", n, events, sum)
	require.Greater(t, sum.granted, 2*n, "hardly anything was granted")
	for _, rare := range []int{sum.again, sum.second, sum.closed, sum.rejoined, sum.initialized} {
		require.Greater(t, rare, n/50, "something hardly ever happened")
	}
}
