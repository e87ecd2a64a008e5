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
	"github.com/redlock-go/redlock/internal/contention"
	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/fencing"
	"github.com/redlock-go/redlock/internal/holding"
	"github.com/redlock-go/redlock/quorum"
)

// Errors of fenced acquires that no retry mends.
var (
	// ErrForgotten says that too many nodes have forgotten the tokens.
	ErrForgotten = errors.New("redlock: too many nodes have forgotten the fencing tokens: an operator must call InitFencing")
	// ErrFleet says that nodes belong to another fleet.
	ErrFleet = errors.New("redlock: nodes hold the fencing tokens of a fleet that is configured otherwise")

	// ErrClock refuses to make tokens from a clock that cannot be right.
	ErrClock = errors.New("redlock: no fencing token can be made from this clock")
)

// DefaultFenceSet is the key of the tokens.
const DefaultFenceSet = "redlock:fence"

// fence is the client's half of package fencing: it proposes tokens, learns from
// refusals, and knows the present life of each node. rejoin.go brings nodes back that have
// forgotten.
type fence struct {
	group *Group
	on    bool
	fleet fencing.Fleet
	name  string // of the fleet: a digest of what all its clients must have in common
	set   string
	wall  func() time.Time

	persistent uint64 // nodes that forget nothing in a restart, a bit each

	encode *command.Fence // the driver lock protects it

	forgotten atomic.Uint64 // nodes that may have no vote, a bit each, until it is known that they do
	doubted   atomic.Uint64 // those of them that may have forgotten again since they were noticed
	nonces    atomic.Uint64 // that were made
	medic     medic

	mu      sync.Mutex
	lives   [quorum.MaxNodes]nodeLife
	foreign [quorum.MaxNodes]string        // the marker of another fleet
	faults  [quorum.MaxNodes]error         // of the last question, nil if it was answered
	due     [quorum.MaxNodes]time.Duration // when the quarantine ends, if it is known
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
	for node, a := range cfg.Conn.Addresses {
		if names = append(names, a.String()); a.Persistent {
			f.persistent |= bit(node)
		}
	}
	slices.Sort(names)
	// The names are many, so a digest stands for them. It has no colon: see fencing.Me.
	f.name = fmt.Sprintf("nodes-%x,quorum-%d-of-%d,MaxTTL-%v", contention.Hash(strings.Join(names, ",")), f.fleet.Quorum, n, ttl)
	f.encode = &command.Fence{Set: f.set}
	cfg.Engine.Fence, cfg.Engine.OnForgotten = f.encode, f.told
	cfg.Conn.Fenced = true // or tokens that come back from an old file would count
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

// micros is the client's own time, or why it cannot be one.
func (f *fence) micros() (uint64, error) {
	now := f.wall() // user code
	if micros := now.UnixMicro(); micros >= fencing.FirstTime && micros <= fencing.MaxToken-holding.MaxPasses {
		return uint64(micros), nil
	}
	return 0, fmt.Errorf("%w: FenceClock reads %s, which is not from 2020 to 2255", ErrClock, now.UTC().Format(time.RFC3339))
}

// propose gives an acquire the tokens of its next attempt, where acquires are fenced. The first
// is the lock's, the others are those of the holders that it passes on to.
func (f *fence) propose(b *fencing.Block, p *fencing.Proposal) error {
	if !f.on {
		return nil
	}
	now, err := f.micros()
	if err != nil {
		return err
	}
	var ok bool
	if *b, ok = p.Next(now, holding.MaxPasses); !ok {
		return fmt.Errorf("%w: a node has accepted a token that leaves none below 2^53", ErrClock)
	}
	return nil
}

// again takes notice of what nodes have answered to an attempt that has ended with err, with
// an operation for each key. It reports whether another is to be made at once: each key that
// was lost was refused for nothing but the number of the token, and a quorum can grant a larger
// one. Else it returns the error that is to be reported.
func (f *fence) again(p *fencing.Proposal, err error, ops ...*engine.Op) (bool, error) {
	if !f.on || err != engine.ErrTaken && err != engine.ErrNoQuorum {
		return false, err // won, not sent, or left
	}
	worst := fencing.Again
	for _, op := range ops {
		if op.Err == nil {
			continue
		}
		advice, final := f.learn(op, p, op.Err)
		if final != op.Err {
			err = final
		}
		if advice != fencing.Again {
			worst = advice
		}
	}
	return p.Again(worst), err
}

// learn takes notice of what nodes have told of an attempt that was lost with err. An error
// that only an operator can mend takes the place of err.
func (f *fence) learn(op *engine.Op, p *fencing.Proposal, err error) (fencing.Advice, error) {
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
	advice := r.Advise(f.fleet)
	switch advice {
	case fencing.Misfit:
		err = f.misfit()
	case fencing.Closed:
		err = f.closed(r.Forgotten())
	}
	return advice, err
}

// granted notes which nodes have granted an acquire. One that was not known to have its vote
// is asked at once: another client has brought it back.
func (f *fence) granted(ops ...*engine.Op) {
	if !f.on {
		return
	}
	for _, op := range ops {
		for left := f.forgotten.Load(); left != 0; left &= left - 1 {
			node := bits.TrailingZeros64(left)
			if o, _ := op.Tally.Outcome(node); o == quorum.Granted && f.doubted.Or(bit(node))&bit(node) == 0 {
				f.medic.ring()
			}
		}
	}
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
	if left := f.due[node] - f.group.clock.Now(); left > 0 {
		return fmt.Errorf("%w: its quarantine ends in %v, and no other node should be restarted before", errNoFence, left.Round(time.Millisecond))
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
	return fmt.Errorf("%w (%s have %s, this client has %s): all clients must have the same Nodes and MaxTTL; with another FenceSet tokens would begin anew, and could be smaller", ErrFleet, f.names(nodes), Quote(text), f.name)
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

func bit(node int) uint64 { return 1 << uint(node) }

// up reports whether a node has a connection.
func (g *Group) up(node int) bool {
	g.engine.DriverLock().Lock()
	defer g.engine.DriverLock().Unlock()
	return g.fleet.Away()&bit(node) == 0
}
