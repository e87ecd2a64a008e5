package fencing_test

import (
	"fmt"

	"github.com/redlock-go/redlock/internal/base/clock"
	. "github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/test/fencenode"
	"github.com/redlock-go/redlock/quorum"
)

// world has the bounds of a search, and a variant of the protocol. Its zero variant is the protocol itself. Variants
// are made here, around the rules of the package.
type world struct {
	name                             string
	nodes, attempts, clients, losses int
	from, to                         quorum.Set // a change is under way: the nodes of both configurations
	calls                            int        // of operators in it
	back                             bool       // the last of them is for the way back
	acts                             string     // of each call a letter and its client's step: change, back, init, recover
	groups                           bool       // each node is a group, and the key goes from the first to the second
	gives                            bool       // acts give votes here
	given                            bool       // clients of both have given notice to the nodes of the next one
	joined                           bool       // the nodes of the next one have come to it
	steps                            string     // of each attempt's client, if not all are tried
	block                            int        // tokens of an attempt
	rollback                         bool       // a loss may leave any older state
	lapse                            bool       // notices lapse, at any time
	collect                          bool       // floors are raised by collection
	empty                            bool       // the fleet's first start
	init                             bool       // an operator may give the largest token seen
	calm                             bool       // its number is from when nodes are noticed, and no attempt is under way then
	live                             bool       // wherever a majority votes, a free key is locked with the second attempt
	keepStale                        bool       // requests and clients with an earlier nonce are kept: much larger, the same verdict
	everyPath                        bool       // go on where nothing can break any more
	distinct                         bool       // attempts propose different tokens
	lazy                             bool       // attempts end, and REJOINs are sent, at any time
	limit                            int        // of states
	slow                             bool       // it is for long runs

	atOnce        bool // a forgetful node votes at once
	noQuarantine  bool
	noReads       bool
	readsEarly    bool // before the quarantine's end
	fewReads      bool // q-1 others
	readsInactive bool // others without a vote, too
	fromSend      bool // the timer starts when NOTICE is sent
	unboundActive bool // an older state has a vote after a restart
	noWord        bool // InitFencing without an operator's number: what nodes with a vote show, and a clock
	earlyWord     bool // the operator's number is from before the quarantine
	lowWord       bool // and one less than required
	bounded       bool // nodes refuse tokens far above their own
	firstRefusal  bool // a refusal that rules out a quorum ends an attempt
	lower         bool // collection sets the floor without max
	noFloor       bool // READ ignores the floor

	noCall    bool // the next configuration is served without an operator's call
	beside    bool // and the present one after it
	fewSealed bool // the call seals one node less than a quorum
	oneLook   bool // and does not look again
	relabels  bool // each node coming back has both
	unsealed  bool // or the present one alone, though others are sealed
	oldReads  bool // or the memory of nodes of the present one

	anyAnswer   bool // an act takes a silent node for a forgetful one
	anyNotice   bool // an act begins beside a change
	anyGroup    bool // an init looks at its own group alone
	anyStage    bool // a recovery gives votes as before the change
	anyNonce    bool // an act's number is used for a node that has forgotten again
	sealsOpen   bool // a call seals nodes opened by another
	opensInTurn bool // a group is opened before the other is sealed
	ownFloor    bool // or with its own tokens alone
	looksApart  bool // each group is looked at again for itself

	fleets [4]Fleet
}

// top is the largest token of interest: tokens are compared and never added to, so there are as many values as tokens.
func (w *world) top() uint8 { return uint8(w.attempts * w.block) }

// namings is the number of different names in a marker.
func (w *world) namings() int {
	if w.to == 0 {
		return 1
	}
	return len(fleetNames)
}

func bitOf(b bool) int { return int(bit(b)) }

func (w *world) begin() {
	w.block = max(w.block, 1)
	if w.to == 0 {
		w.from = 1<<w.nodes - 1
	}
	of := func(name string, nodes quorum.Set) Configuration {
		return Configuration{Name: name, Nodes: nodes, Quorum: nodes.Len()/2 + 1}
	}
	now, next := of("now", w.from), of("next", w.to)
	w.fleets = [...]Fleet{{now, Configuration{}, 1}, {now, next, 1}, {next, Configuration{}, 1}, {next, now, 1}}
}

// fleetOfNode is the fleet of node i for clients in a step.
func (w *world) fleetOfNode(i int, step uint8) Fleet {
	f := w.fleets[step]
	if w.groups {
		if i > 0 && step == before {
			return Fleet{} // they have one group
		}
		f.Now.Nodes, f.Now.Quorum = 1<<i, 1
		if step == joint || step == goingBack {
			f.Next.Nodes, f.Next.Quorum = 1<<i, 1
		}
	}
	return f
}

// readers is the fleet as believed by the clients of this variant.
func (w *world) readers(step uint8, node int) Fleet {
	f := w.fleetOfNode(node, step)
	c := &f.Now
	nodes := c.Nodes.Len()
	switch {
	case w.noReads:
		c.Quorum = nodes + 1
	case w.fewReads:
		c.Quorum = nodes - c.Quorum + 2
	}
	return f
}

// role has the configurations of node i.
func (w *world) role(i int) quorum.Set { return w.from>>i&1 | w.to>>i&1<<1 }

// fresh is a state before the first attempt, without its tokens.
func (w *world) fresh() (s state) {
	for i := range w.nodes {
		s.nodes[i].marker = active
		switch isNew := w.empty || w.from>>i&1 == 0; {
		case isNew && w.given:
			s.nodes[i].marker = provisionalBoth
		case isNew && !w.joined:
			s.nodes[i].marker = absent
		}
	}
	return s
}

// starts returns the initial states: all orders of the proposed tokens. Attempts are numbered in the order of their
// start.
func (w *world) starts() (all []state) {
	s := w.fresh()
	seen := map[[maxAttempts][2]uint8]bool{}
	var choose func(k int)
	choose = func(k int) {
		if k == w.attempts {
			order := w.order(s)
			if !seen[order] && (w.everyPath || w.open(&s)) && !(w.distinct && w.shares(s)) {
				seen[order] = true
				all = append(all, s)
			}
			return
		}
		for t := uint8(1); t+uint8(w.block)-1 <= w.top(); t++ {
			s.attempts[k].token = t
			for step := range w.changeSteps() {
				s.attempts[k].step = step
				if w.steps == "" || w.steps[k] == '0'+step {
					choose(k + 1)
				}
			}
		}
	}
	choose(0)
	return all
}

// shares reports whether two attempts propose the same token.
func (w *world) shares(s state) bool {
	for k, a := range s.attempts[:w.attempts] {
		for _, b := range s.attempts[:k] {
			if w.overlap(a, b) {
				return true
			}
		}
	}
	return false
}

// order is the class of orders of the proposed tokens. With single tokens only their
// ranks matter; of blocks every choice is kept.
func (w *world) order(s state) (ranks [maxAttempts][2]uint8) {
	for i, a := range s.attempts[:w.attempts] {
		ranks[i] = [2]uint8{a.token, a.step}
		if w.block > 1 {
			continue
		}
		smaller := [maxAttempts + 1]bool{}
		for _, b := range s.attempts[:w.attempts] {
			smaller[b.token] = b.token < a.token
		}
		ranks[i][0] = 0
		for _, is := range smaller {
			ranks[i][0] += uint8(bit(is))
		}
	}
	return ranks
}

func (w *world) granted(a attempt) bool { return a.phase == succeeded }

func (w *world) last(a attempt) uint8 { return a.token + uint8(w.block) - 1 }

// open reports whether the property can still be broken: an attempt may yet succeed after
// one with a token as large, or beside one with the same token.
func (w *world) open(s *state) bool {
	for k := range w.attempts {
		b := s.attempts[k]
		if b.phase == running && b.late {
			return true
		}
		for _, a := range s.attempts[:k] {
			if a.phase == ended || b.phase == ended || w.granted(a) && w.granted(b) {
				continue
			}
			if b.phase == unstarted && b.token <= w.last(a) || w.overlap(a, b) {
				return true
			}
		}
	}
	return false
}

func (w *world) overlap(a, b attempt) bool { return a.token <= w.last(b) && b.token <= w.last(a) }

// counting returns the attempts still counting votes, a bit each: a quarantine waits for their ends.
func (w *world) counting(s *state) (set uint8) {
	for k, a := range s.attempts[:w.attempts] {
		if a.phase == running {
			set |= 1 << k
		}
	}
	return set
}

// The names under which the rules see the model's nodes.
var (
	me       = mes[before]
	earlier  = Me{Fleet: "now", Run: "before"}
	nonceNow = "n.0"
	nonceOld = "o.0"
	theKey   = "key"
)

// node makes the value for the rules. It uses the storage of tokens.
func (n *column) node(tokens []fencenode.KeyToken) fencenode.Node {
	v := fencenode.Node{Floor: Token(n.floor), Tokens: tokens[:0]}
	switch n.marker {
	case active:
		v.Marker = Marker{Phase: Voting, Me: me}
	case provisional, provisionalNext, provisionalBoth:
		v.Marker = Marker{Phase: Provisional, Me: Me{Run: me.Run}, Nonce: n.nonce()}
	case outdated:
		v.Marker = Marker{Phase: Voting, Me: earlier}
	case activeNext:
		v.Marker = Marker{Phase: Voting, Me: mes[after]}
	case activeBoth:
		v.Marker = Marker{Phase: Voting, Me: mes[joint]}
	case sealed:
		v.Marker = Marker{Phase: Voting, Me: mes[joint], Nonce: nonceNow}
	case sealedBack:
		v.Marker = Marker{Phase: Voting, Me: mes[goingBack], Nonce: nonceNow}
	}
	if n.f > 0 {
		v.Tokens = append(v.Tokens, fencenode.KeyToken{Name: theKey, F: Token(n.f)})
	}
	return v
}

// keep takes the values back.
func (n *column) keep(v *fencenode.Node) {
	n.floor, n.f = uint8(v.Floor), 0
	if len(v.Tokens) > 0 {
		n.f = uint8(v.Tokens[0].F)
	}
	switch {
	case v.Marker.Phase == Absent:
		n.marker = absent
	case v.Marker.Phase == Provisional && OfTwo(v.Marker.Nonce):
		n.marker = provisionalBoth
	case v.Marker.Phase == Provisional && NonceFleet(v.Marker.Nonce) == "next":
		n.marker = provisionalNext
	case v.Marker.Phase == Provisional:
		n.marker = provisional
	case v.Marker.Me == earlier:
		n.marker = outdated
	case v.Marker.Me == mes[after]:
		n.marker = activeNext
	case v.Marker.Me == mes[goingBack]:
		n.marker = sealedBack
	case v.Marker.Me == mes[joint] && v.Marker.Nonce == "":
		n.marker = activeBoth
	case v.Marker.Me == mes[joint]:
		n.marker = sealed
	default:
		n.marker = active
	}
}

func (k *client) nonce() string {
	if k.stale {
		return nonceOld
	}
	return nonceNow
}

// nonce is the node's nonce, with the fleet of the clients that have given notice.
func (n *column) nonce() string {
	switch n.marker {
	case provisionalNext:
		return "next/" + nonceNow
	case provisionalBoth:
		return "now+next/" + nonceNow
	}
	return nonceNow
}

// isProvisional reports whether the node has a nonce and no vote.
func (n *column) isProvisional() bool { return n.marker == provisional || n.marker >= provisionalNext }

// noticeOf is the nonce in the notice of clients in a step.
func (w *world) noticeOf(step uint8) string {
	switch {
	case w.acts == "" || step == before:
		return "n"
	case step == after:
		return "next/n"
	}
	return "now+next/n"
}

// memory is the result of the client's reads.
func (k *client) memory() Memory {
	now, next, both := quorum.Set(k.read[namesNow]), quorum.Set(k.read[namesNext]), quorum.Set(k.read[namesBoth])
	if k.step == after {
		now, next = next, now
	}
	return Memory{Now: now, Next: next, Both: both}
}

// recovery makes the value for the client's rules, at time 0: the quarantine ends at 1.
func (w *world) recovery(k *client) Recovery {
	due := clock.Instant(0)
	if k.phase == waiting && !w.readsEarly {
		due = 1
	}
	return RecoveryAt(w.readers(k.step, int(k.node)), int(k.node), k.nonce(), due, k.memory(), Token(k.floor))
}

// An action is a step of the model, with its subject.
type action struct {
	kind    uint8
	a, b, c int8
}

const (
	starts = iota
	votes
	loses
	lapses
	restarts
	sends
	notices
	quarantineEnds
	reads
	rejoins
	rejoinsStale
	stops
	initializes
	collects
	givesUp
	decides
	sendsRejoin
	seals
	looksAgain
	opens
	shows
	misses
	verdicts
)

var texts = [...]string{
	starts:         "a%d starts",
	votes:          "n%[2]d executes the acquire of a%[1]d: OK",
	loses:          "n%d loses its data",
	lapses:         "the notice of n%d is not repeated",
	restarts:       "n%d restarts with an older state: F=%d floor=%d",
	sends:          "c%d sends NOTICE to n%d",
	notices:        "c%d has the reply to NOTICE of n%d, in step %d",
	quarantineEnds: "c%d: the quarantine ends, and all attempts that it waits for",
	reads:          "c%d reads n%d",
	rejoins:        "n%d executes REJOIN with floor %d, names %d",
	rejoinsStale:   "n%d executes REJOIN with an earlier nonce and floor %d",
	stops:          "c%d stops",
	initializes:    "c%d is given the floor %d by an operator",
	collects:       "n%d collects up to %d",
	givesUp:        "a%d gives up",
	decides:        "a%d counts its votes and succeeds",
	sendsRejoin:    "c%d sends REJOIN",
	seals:          "call %d seals n%d",
	looksAgain:     "call %d looks again (%d)",
	opens:          "call %d opens with floor %d",
	shows:          "act %d looks at n%d: %d",
	misses:         "act %d misses n%d",
	verdicts:       "act %d has looked: %d, stage %d",
}

func (a action) String() string {
	args := []any{a.a, a.b, a.c}
	if a.kind == votes {
		return fmt.Sprintf(texts[a.kind], a.a, a.b)
	}
	n := 0
	for _, c := range texts[a.kind] {
		n += bitOf(c == '%')
	}
	return fmt.Sprintf(texts[a.kind], args[:n]...)
}
