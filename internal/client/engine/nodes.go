package engine

import (
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/base/gate"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
)

// Fleet holds the nodes as the engine uses them: a conn.Fleet, and which of its nodes have a vote. Its contract is that of
// package conn.
type Fleet interface {
	// Quarantined returns the nodes without a vote now. They are sent all commands, so they have the keys of all locks when
	// their vote counts again. QuarantinedFor is those in a call whose lock may live for so long, drift included: these
	// and more.
	Quarantined() quorum.Set
	QuarantinedFor(life time.Duration) quorum.Set
	// NoteTTL notes that a sent key may live for d from now on. The longest one is the wait of a restarted node. A key
	// whose callers all ask QuarantinedFor need not be noted.
	NoteTTL(d time.Duration)

	Len() int
	Forms() []conn.Form
	Node(node int) conn.Node // the engine uses Form and Connection
	SetForm(node int, f conn.Form)
	Away() quorum.Set
	Early() quorum.Set
	Fault(node int) error
	Want()
	Send(b *conn.Batch)
	SendTo(node int, b *conn.Batch)
	Sweep(d time.Duration)
	Check()
	CanBlock() bool
	Wake()
	Arm(late bool)
	Wait() bool
	Close()
	Drain()
}

// nodes is the fleet as the engine uses it, and what the nodes owe. The driver lock protects it.
type nodes struct {
	Fleet
	clock      clock.Clock
	n          int
	quorum     *quorum.Config
	pulse      pulse
	unanswered *gate.Gate    // batches with replies still owed by some node
	undeciding bool          // the answers of early nodes alone decide nothing
	longest    time.Duration // TTL sent
	noQuorum   atomic.Bool   // too few of them can vote for an acquire to win
	closing    atomic.Bool
}

func (n *nodes) init(c clock.Clock, q *quorum.Config) {
	n.clock, n.quorum, n.unanswered = c, q, gate.New()
	n.pulse.init()
}

// start gives the fleet. Without a configured quorum, a majority of it is one.
func (n *nodes) start(f Fleet) {
	n.Fleet, n.n = f, f.Len()
	if n.quorum == nil {
		n.quorum = quorum.Majority(quorum.First(n.n))
	}
	early := n.Early()
	n.undeciding = !n.quorum.IsQuorum(early) && !n.quorum.Blocks(early)
}

// nonvoters returns the nodes without a vote: they are down or quarantined. If the
// others are no quorum, no acquire can win.
func (n *nodes) nonvoters() quorum.Set {
	nonvoters := n.Away() | n.Quarantined()
	if none := n.quorum.Blocks(nonvoters); none != n.noQuorum.Load() {
		n.noQuorum.Store(none)
	}
	return nonvoters
}

// noteTTL notes a TTL about to be sent. That of a term is none: other keys need not wait for it after a restart.
func (n *nodes) noteTTL(ttl time.Duration) {
	if ttl > n.longest {
		n.longest = ttl
		n.NoteTTL(ttl + quorum.Drift(ttl))
	}
}

// sendTo sends commands to one node alone, to be answered within timeout.
func (n *nodes) sendTo(node int, b *conn.Batch, timeout time.Duration) {
	n.unanswered.Enter()
	n.pulse.see(timeout)
	n.SendTo(node, b)
}

// rephrase has a node asked by scripts from now on, in place of the native commands of a form.
func (n *nodes) rephrase(node int, f command.Form) {
	now := command.Form(n.Node(node).Form)
	n.SetForm(node, conn.Form(now.Without(f)))
}
