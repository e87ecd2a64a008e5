package group

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/fencing"
	"github.com/redlock-go/redlock/internal/waiters"
	"github.com/redlock-go/redlock/quorum"
)

// Errors of fenced acquires that no retry mends.
var (
	// ErrForgotten says that too many nodes have forgotten the tokens.
	ErrForgotten = errors.New("redlock: too many nodes have forgotten the fencing tokens: an operator must call InitFencing")
	// ErrFleet says that nodes belong to another fleet.
	ErrFleet = errors.New("redlock: nodes hold the fencing tokens of a fleet that is configured otherwise")

	errNoToken  = errors.New("redlock: no fencing token is left below 2^53: a clock was far ahead")
	errFarClock = errors.New("redlock: FenceClock is far ahead: tokens must stay below 2^53, and InitFencing trusts the clock")
)

const (
	// maxAhead is how far a token may be ahead of a node's clock. It is no part of the proof:
	// it keeps one client whose clock is wrong from using up the tokens of a key.
	maxAhead = time.Minute
	// maxAgain is how many attempts in a row may follow refusals of the number alone.
	maxAgain = 4
	// DefaultFenceSet is the key of the tokens.
	DefaultFenceSet = "redlock:fence"
)

// fence is the client's half of package fencing: it proposes tokens, learns from
// refusals, and knows the present life of each node. rejoin.go brings nodes back that have
// forgotten.
type fence struct {
	group  *Group
	on     bool
	fleet  fencing.Fleet
	name   string // of the fleet: a digest of what all its clients must have in common
	set    string
	wall   func() time.Time
	encode *command.Fence // the driver lock protects it

	forgotten atomic.Uint64 // nodes that may have no vote, a bit each, until it is known that they do
	doubted   atomic.Uint64 // those of them that may have forgotten again since they were noticed
	granted   atomic.Uint64 // a token of late
	nonces    atomic.Uint64 // that were made
	medic     medic

	mu      sync.Mutex
	clock   fencing.Clock
	lives   [quorum.MaxNodes]nodeLife
	foreign [quorum.MaxNodes]string // the marker of another fleet
	faults  [quorum.MaxNodes]error  // of the last question, nil if it was answered
}

// nodeLife is one connection of a node, and how its scripts are addressed on it.
type nodeLife struct {
	connection uint64
	me         []byte
}

func (f *fence) init(g *Group, cfg *Config) {
	f.group, f.on = g, cfg.Fenced
	if !f.on {
		return
	}
	n := len(cfg.Conn.Addresses)
	ttl := cfg.Engine.MaxTTL
	f.fleet = fencing.Fleet{Nodes: n, Quorum: quorum.Size(n), Quarantine: ttl + quorum.Drift(ttl)}
	f.set, f.wall = cfg.FenceSet, cfg.FenceClock
	var names []string
	for _, a := range cfg.Conn.Addresses {
		names = append(names, a.String())
	}
	slices.Sort(names)
	// The names are many, so a digest stands for them. It has no colon: see fencing.Me.
	f.name = fmt.Sprintf("nodes-%x,quorum-%d-of-%d,MaxTTL-%v", waiters.Hash(strings.Join(names, ",")), f.fleet.Quorum, n, ttl)
	f.encode = &command.Fence{Set: f.set, MaxAhead: maxAhead.Microseconds()}
	cfg.Engine.Fence, cfg.Engine.OnForgotten = f.encode, f.told
	cfg.Conn.NeedRunID = true // or tokens that come back from an old file would count
	f.medic.init(f)
}

// up begins a node's life on a new connection. The driver lock is held.
func (f *fence) up(node int) {
	if !f.on {
		return
	}
	fleet := f.group.fleet
	me := []byte(f.name + ":" + fleet.RunID(node))
	f.encode.Me[node] = me
	fleet.SetForm(node, fencedForm(fleet.Form(node), node))
	f.mu.Lock()
	f.lives[node], f.foreign[node], f.faults[node] = nodeLife{fleet.Connection(node), me}, "", nil
	f.mu.Unlock()
	f.forgotten.Or(bit(node)) // it is asked, before an acquire has to find out
	f.doubted.Or(bit(node))
	f.medic.ring()
}

// told notes that a node has no vote. The driver lock is held.
func (f *fence) told(node int, a fencing.Answer) {
	if a.Code == fencing.Foreign {
		f.mu.Lock()
		f.foreign[node] = a.Text
		f.mu.Unlock()
		return
	}
	if a.Code != fencing.Amnesia {
		return
	}
	news := f.forgotten.Or(bit(node))&bit(node) == 0
	if a.Text == "" && f.doubted.Or(bit(node))&bit(node) == 0 {
		news = true
	}
	if news {
		f.medic.ring()
	}
}

// grant notes the token of a lock that was acquired, if it has one, and returns it.
func (f *fence) grant(token uint64) uint64 {
	if token != 0 {
		f.granted.Store(token)
	}
	return token
}

// micros is the client's own time.
func (f *fence) micros() uint64 { return uint64(max(0, f.wall().UnixMicro())) }

// propose returns the tokens of the next attempt. The first is the lock's, the others are
// those of the holders that it passes on to.
func (f *fence) propose(p *fencing.Proposal) (fencing.Block, error) {
	own := f.micros() // user code
	f.mu.Lock()
	defer f.mu.Unlock()
	b, ok := p.Next(&f.clock, own, maxPasses)
	if !ok {
		return b, errNoToken
	}
	return b, nil
}

// learn takes notice of what nodes told of an attempt that has not won, and returns whether
// another may follow at once, or the error that is to be reported.
func (f *fence) learn(op *engine.Op, p *fencing.Proposal, err error) (again bool, _ error) {
	if !f.on || err != engine.ErrTaken && !errors.Is(err, engine.ErrNoQuorum) {
		return false, err
	}
	var r fencing.Refusals
	for node := range f.fleet.Nodes {
		if o, _ := op.Tally.Outcome(node); o == quorum.Granted {
			r.Add(node, fencing.Answer{Code: fencing.OK})
		}
	}
	for _, t := range op.Told {
		r.Add(t.Node, t.Answer)
		p.Learn(t.Answer)
	}
	switch r.Advise(f.fleet) {
	case fencing.Misfit:
		return false, f.misfit()
	case fencing.Closed:
		return false, f.closed(r.Forgotten())
	case fencing.Again:
		return true, err
	}
	return false, err
}

// voting notes that a node has its vote, and wakes those who wait for a quorum.
func (f *fence) voting(node int) {
	f.forgotten.And(^bit(node))
	lock := f.group.engine.DriverLock()
	lock.Lock()
	defer lock.Unlock()
	f.group.readiness.nodeUp()
}

// Why a node has no vote in fenced acquires, or is not known to have one.
var (
	errNoFence   = errors.New("node may have forgotten fencing tokens, and has no vote yet")
	errElsewhere = errors.New("node holds the fencing tokens of a fleet that is configured otherwise")
)

func (f *fence) noVote(node int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.foreign[node] != "" {
		return errElsewhere
	}
	if err := f.faults[node]; err != nil {
		return fmt.Errorf("%w: %w", errNoFence, err)
	}
	return errNoFence
}

// voteless says which nodes have no vote, and why, as far as it is known.
func (f *fence) voteless() error {
	var e nodesError
	for node := range f.fleet.Nodes {
		switch {
		case !f.group.up(node):
			e = append(e, fmt.Errorf("%s %w", f.group.fleet.Addr(node), conn.ErrDown))
		case f.forgotten.Load()&bit(node) != 0:
			e = append(e, fmt.Errorf("%s %w", f.group.fleet.Addr(node), f.noVote(node)))
		}
	}
	return e
}

// nodesError is failures of nodes, in one line.
type nodesError []error

func (e nodesError) Error() string {
	var texts []string
	for _, err := range e {
		texts = append(texts, err.Error())
	}
	return "redlock: nodes without a fenced vote: " + strings.Join(texts, ", ")
}

func (e nodesError) Unwrap() []error { return e }

func (f *fence) closed(nodes uint64) error {
	return fmt.Errorf("%w (%s)", ErrForgotten, f.names(nodes))
}

// misfit names both fleets.
func (f *fence) misfit() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var nodes uint64
	text := "none told"
	for node := range f.fleet.Nodes {
		if f.foreign[node] != "" {
			nodes |= bit(node)
			text = f.foreign[node]
		}
	}
	if _, rest, found := strings.Cut(text, ":"); found { // active:<fleet>:<run_id>
		text, _, _ = strings.Cut(rest, ":")
	}
	return fmt.Errorf("%w (%s have %s, this client has %s): all clients must have the same Nodes and MaxTTL, or another FenceSet", ErrFleet, f.names(nodes), Quote(text), f.name)
}

func (f *fence) names(nodes uint64) string {
	var names []string
	for ; nodes != 0; nodes &= nodes - 1 {
		names = append(names, f.group.fleet.Addr(bits.TrailingZeros64(nodes)))
	}
	return strings.Join(names, ", ")
}

func fencedForm(f conn.Form, node int) conn.Form { return conn.Form(command.Form(f).ForNode(node)) }

func (f *fence) start() {
	if f.on {
		go f.medic.run()
	}
}

// close waits for the medic, after group.ending was closed.
func (f *fence) close() {
	if f.on {
		<-f.medic.ended
	}
}

// up says whether a node has a connection.
func (g *Group) up(node int) bool {
	g.engine.DriverLock().Lock()
	defer g.engine.DriverLock().Unlock()
	return g.fleet.Away()&bit(node) == 0
}
