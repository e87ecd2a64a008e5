package fence

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/internal/client/texts"
	"github.com/redlock-go/redlock/internal/rules/contention"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
)

// DefaultSet is the key of the tokens.
const DefaultSet = "redlock:fence"

// block is how many tokens a lock has: one for each holder it passes on to.
const block = holding.MaxPasses

// Config configures a Client.
type Config struct {
	engine.Env
	Wall       func() time.Time // the wall clock of the tokens
	Set        string           // the key of the tokens
	Now, Next  quorum.Set       // which of them are in each configuration; Next is 0 but in a change
	Places     []string         // in each configuration: which of several groups this is; nil: there is one
	MaxTTL     time.Duration
	NextMaxTTL time.Duration // of the next configuration; 0: the same
	IsNew      bool          // the group is added by a change
	ID         string        // of the process; no other has it
	Looks      bool          // it writes to no node, until an act begins
	AnyToken   bool          // no number of an operator is too large

	// IsUp reports whether a node has a connection.
	IsUp func(node int) bool
	// Voting learns of each node with its vote back, and Forgot of each that has lost it.
	Voting func()
	Forgot func(node int)
}

// Client is one client's part in fencing. The zero Client is of one without fencing.
type Client struct {
	cfg    Config
	engine *engine.Engine
	fleet  fencing.Fleet
	encode *command.Fence // the driver lock protects it
	asks   time.Duration  // how long a node has to answer

	forgotten quorum.SharedSet // nodes that came up, and are not known to have their vote: those that are not in memory
	looks     atomic.Bool      // it writes to no node
	doubted   quorum.SharedSet // some of them, perhaps changed since they were asked
	nonces    atomic.Uint64    // how many were made
	ahead     atomic.Int64     // µs by which the largest floor met was ahead of the client's own running time

	recoveries []recovery // of each node; they belong to the goroutine of Turn

	mu      sync.Mutex
	nodes   []seen
	lives   uint64         // of all nodes
	memory  fencing.Memory // the nodes with their tokens, by their markers
	largest fencing.Token  // shown by a node
	orders  []*order       // of the acts under way
}

// seen is what is known of a node.
type seen struct {
	life
	marker  string        // shown last in this life
	foreign string        // the marker of another fleet
	fault   error         // of the last question; nil: it was answered
	due     clock.Instant // when the quarantine ends, if known
	heard   bool          // it has been asked once, and has answered, or failed to
}

// life is a node until its connection ends or it says that it has forgotten, and the address of its scripts.
type life struct {
	number     uint64
	connection uint64
	run        string
	keeps      bool // it has its tokens of before
	me         []byte
}

// New returns a client, to be completed by Start.
func New(cfg Config) *Client {
	c := &Client{cfg: cfg, encode: &command.Fence{Set: cfg.Set}, nodes: make([]seen, len(cfg.Nodes)), asks: max(cfg.QueryTimeout, time.Second)}
	place := func(list int) string {
		if list < len(cfg.Places) {
			return cfg.Places[list]
		}
		return ""
	}
	c.looks.Store(cfg.Looks)
	longest := max(cfg.MaxTTL, cfg.NextMaxTTL)
	c.fleet = fencing.Fleet{Now: configuration(cfg.Nodes, cfg.Now, cfg.MaxTTL, place(0)), Quarantine: longest + quorum.Drift(longest)}
	if cfg.Next != 0 {
		c.fleet.Next = configuration(cfg.Nodes, cfg.Next, cmp.Or(cfg.NextMaxTTL, cfg.MaxTTL), place(1))
	}
	return c
}

// configuration is the configuration of a set of nodes. Their names are many, so a digest stands for them. With
// several groups its place is a part of it: the place decides which keys are there.
func configuration(all []string, nodes quorum.Set, longest time.Duration, place string) fencing.Configuration {
	var names []string
	for node := range nodes.All() {
		names = append(names, all[node])
	}
	slices.Sort(names)
	size := quorum.Size(len(names))
	return fencing.Configuration{
		Name:  fmt.Sprintf("nodes-%x,quorum-%d-of-%d,MaxTTL-%v%s", contention.Hash(strings.Join(names, ",")), size, len(names), longest, place),
		Nodes: nodes, Quorum: size,
	}
}

func (c *Client) isFenced() bool { return c.nodes != nil }

// Start gives the client the engine, before the first node is up.
func (c *Client) Start(e *engine.Engine) {
	c.engine, c.recoveries = e, make([]recovery, len(c.nodes))
	for node := range c.recoveries {
		c.recoveries[node] = recovery{Recovery: fencing.Recovery{Fleet: c.fleet, Node: node}, collectAt: c.nextCollect()}
	}
}

// Encode is the encoding of the commands of fenced acquires. It is nil without fencing.
func (c *Client) Encode() *command.Fence { return c.encode }

// act has a client that looks take part: nodes are given notice from now on.
func (c *Client) act() {
	if c.looks.CompareAndSwap(true, false) {
		for node := range c.forgotten.Load().All() {
			c.doubted.Add(node)
		}
		c.cfg.Ring()
	}
}

// Up begins the life of a node on a new connection; keeps is whether it forgets nothing in a restart. The driver lock is
// held.
func (c *Client) Up(node int, connection uint64, run string, keeps bool) {
	me := []byte(c.fleet.Name() + ":" + run)
	c.encode.Me[node], c.encode.Known[node] = me, nil
	c.mu.Lock()
	n := &c.nodes[node]
	c.lives++
	*n = seen{life: life{number: c.lives, connection: connection, run: run, keeps: keeps, me: me}, due: n.due, heard: n.heard}
	c.memory = c.memory.Without(quorum.Only(node))
	c.forgotten.Add(node) // it is asked, before an acquire has to find out
	c.mu.Unlock()
	c.doubted.Add(node)
	c.cfg.Ring()
}

// IsAsking reports whether a node now up has not been heard yet: it may turn out to have its vote.
func (c *Client) IsAsking() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.nodes, func(n seen) bool { return n.connection != 0 && !n.heard })
}

// NoVote notes that a node has no vote. The driver lock is held.
func (c *Client) NoVote(node int, a fencing.Answer) {
	if a.Code != fencing.Foreign && a.Code != fencing.Amnesia {
		return
	}
	c.mu.Lock()
	news := c.forgotten.Add(node)
	c.memory = c.memory.Without(quorum.Only(node))
	switch n := &c.nodes[node]; {
	case a.Code == fencing.Foreign: // for as long as this client has not the configurations named by it
		n.foreign = a.Text
	case a.Text == "": // answers to what was asked before are older
		c.lives++
		n.number = c.lives
		news = c.doubted.Add(node) || news
	}
	c.mu.Unlock()
	if news {
		c.cfg.Ring()
	}
}

// micros is the client's own time, or why it cannot be one.
func (c *Client) micros() (uint64, error) {
	now := c.cfg.Wall()
	if micros := now.UnixMicro(); micros >= fencing.FirstTime && micros <= fencing.MaxToken-block {
		return uint64(micros), nil
	}
	return 0, texts.WrongClock(now)
}

// Propose gives an acquire the tokens of its next attempt, where acquires are fenced. The first is the lock's, the
// others are for the holders it passes on to.
func (c *Client) Propose(b *fencing.Block, p *fencing.Proposal) error {
	if !c.isFenced() {
		return nil
	}
	now, err := c.micros()
	if err != nil {
		return err
	}
	if ahead := c.ahead.Load(); ahead != 0 {
		now = max(now, uint64(ahead+c.cfg.Clock.Now().Sub(0).Microseconds())+1)
	}
	all, ok := p.Next(now, block)
	if !ok {
		return texts.NoToken()
	}
	*b = all
	return nil
}

// Again takes notice of the nodes' answers to an attempt ended with err; c is of the last group asked. It
// reports whether another attempt is to be made at once: each lost key was refused for nothing but the number of the
// token, and a quorum can grant a larger one. Else it returns the error to report.
func (c *Client) Again(attempt *engine.Call, err error) (bool, error) {
	if !c.isFenced() || !errors.Is(err, engine.ErrTaken) && err != engine.ErrSplit && err != engine.ErrNoQuorum {
		return false, err // won, not sent, or left
	}
	worst, p := fencing.Again, &attempt.Proposal
	for call := attempt; call != nil; call = call.And {
		if !call.Asked || call.Err == nil {
			continue
		}
		advice, final := c.learn(&call.Op, p)
		if final != nil {
			err = final
		}
		if advice != fencing.Again {
			worst = advice
		}
	}
	return p.Again(worst) && !attempt.Shared, err
}

// learn takes notice of the nodes' answers to a lost operation. The error, if any, is for an operator to mend.
func (c *Client) learn(op *engine.Op, p *fencing.Proposal) (fencing.Advice, error) {
	r := fencing.Answers{fencing.OK: op.Tally.Nodes(quorum.Granted)}
	for _, t := range op.Answers {
		r.Add(t.Node, t.Answer)
		p.Learn(t.Answer)
		if t.Answer.Code == fencing.Low {
			c.remember(t.Answer.Token)
		}
	}
	c.mu.Lock()
	shown := c.memory
	c.mu.Unlock()
	switch advice := r.Advise(&c.fleet, shown); advice {
	case fencing.Misfit:
		return advice, c.misfit()
	case fencing.Closed:
		return advice, texts.Forgotten(c.names(r[fencing.Amnesia]))
	default:
		return advice, nil
	}
}

// IsChanging reports whether the client has two configurations.
func (c *Client) IsChanging() bool { return c.fleet.Next.Nodes != 0 }

// remember takes notice of a floor. All keys have it, so the next proposals are above it, and grow with time, like a
// clock's: a key locked again costs one attempt too. Tokens of other locks are not remembered.
func (c *Client) remember(floor fencing.Token) {
	if ahead := int64(floor) - c.cfg.Clock.Now().Sub(0).Microseconds(); floor < fencing.MaxToken {
		c.mu.Lock()
		c.ahead.Store(max(c.ahead.Load(), ahead))
		c.mu.Unlock()
	}
}

// Granted has nodes asked at once that have granted an acquire and are not known to have their vote: another client has
// brought them back.
func (c *Client) Granted(op *engine.Op) {
	for node := range (c.forgotten.Load() & op.Tally.Nodes(quorum.Granted)).All() {
		if c.doubted.Add(node) {
			c.cfg.Ring()
		}
	}
}

// Vote is why a node has no vote, or is not known to have one, and for how long still, as far as known. The error is
// nil for a node known to vote, and without fencing.
func (c *Client) Vote(node int) (left time.Duration, why error) {
	if !c.forgotten.Has(node) {
		return 0, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := &c.nodes[node]
	left = max(0, n.due.Sub(c.cfg.Clock.Now()))
	if n.foreign != "" {
		return left, texts.ErrElsewhere
	}
	return left, texts.NoFence(n.fault, left)
}

// Serves is the clients served by a node with a vote, as it has shown last: clients of this client's present
// configuration, "now", of the next one too, "now+next", or of the next one alone, "next". Other configurations are
// there by their names. It is "" where not known.
func (c *Client) Serves(node int) string {
	if !c.isFenced() {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m := fencing.ParseMarker(c.nodes[node].marker)
	if m.Phase != fencing.Voting || c.nodes[node].foreign == "" && c.forgotten.Has(node) {
		return ""
	}
	names := strings.Split(m.Me.Fleet, "+")
	for i, name := range names {
		switch name {
		case c.fleet.Now.Name:
			names[i] = "now"
		case c.fleet.Next.Name:
			names[i] = "next"
		}
	}
	return strings.Join(names, "+")
}

// Votes returns the known reasons why nodes have no vote.
func (c *Client) Votes() error {
	var e texts.WithoutVote
	for node, name := range c.cfg.Nodes {
		if !c.cfg.IsUp(node) {
			e = append(e, fmt.Errorf("%s %w", name, conn.ErrDown))
		} else if _, err := c.Vote(node); err != nil {
			e = append(e, fmt.Errorf("%s %w", name, err))
		}
	}
	return e
}

// misfit names both fleets.
func (c *Client) misfit() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var nodes quorum.Set
	text := "none known"
	for node := range c.cfg.Nodes {
		if c.nodes[node].foreign != "" {
			nodes.Add(node)
			text = c.nodes[node].foreign
		}
	}
	has := cmp.Or(fencing.ParseMarker(text).Me.Fleet, text)
	return texts.Misfit(c.names(nodes), has, c.fleet.Name(), strings.Contains("+"+has+"+", "+"+c.fleet.Now.Name+"+"))
}

func (c *Client) names(nodes quorum.Set) string {
	var names []string
	for node := range nodes.All() {
		names = append(names, c.cfg.Nodes[node])
	}
	return strings.Join(names, ", ")
}
