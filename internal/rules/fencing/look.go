package fencing

import (
	"strings"

	"github.com/redlock-go/redlock/quorum"
)

// Look holds the state of a group's nodes before an act of an operator, as shown by SHOW, which is a read. An act
// decides from it alone. It is a plain value.
type Look struct {
	fleet   Fleet
	Memory  Memory
	Token   Token      // the largest shown by any node
	Silent  quorum.Set // nodes without an answer
	Foreign quorum.Set // of another fleet
	Marked  quorum.Set // with a marker of an earlier run
	Others  quorum.Set // given notice by running clients of another fleet: another change is under way
	Other   string     // the fleet of that change
	Lost    quorum.Set // never to come back, by an operator's word
	Added   bool       // the group comes with a change
	Patient bool       // it waits for a nonce of each node with an answer

	// Nonces are the nonces of nodes without a vote, and of sealed ones. An act is bound to them. A node with another
	// nonce has forgotten again, behind another act, and has tokens unknown to this one.
	Nonces map[int]string
}

// BeginLook begins a look at the nodes of a client.
func BeginLook(f Fleet) Look { return Look{fleet: f, Nonces: map[int]string{}} }

// Shown takes the answer of a node to Show, in a run.
func (l *Look) Shown(node int, run string, a Answer) {
	if a.Code == Foreign {
		l.Foreign.Add(node)
		return
	}
	l.Token = max(l.Token, a.Token)
	switch m := ParseMarker(a.Text); {
	case m.Serves(Me{Fleet: l.fleet.Name(), Run: run}):
		l.Memory.Add(&l.fleet, node, m)
		l.Nonces[node] = m.Nonce
	case m.Phase == Voting:
		l.Marked.Add(node)
	case m.Phase == Provisional && l.fleet.IsOther(m.Nonce):
		l.Other = NonceFleet(m.Nonce)
		l.Others.Add(node)
	case l.fleet.HasNotice(m, run):
		l.Nonces[node] = m.Nonce
	}
}

// acts is the verdict to give votes, once a quorum has votes or nonces: this client gives notice to the others now. A
// node without a nonce gets its vote from the others, a quarantine later. If one of them forgets meanwhile, too few
// remember. So an act is patient at first.
func (l *Look) acts() Verdict {
	nodes := l.Memory.All()
	for node := range l.Nonces {
		nodes.Add(node)
	}
	if !l.fleet.IsQuorum(nodes) || l.Patient && l.fleet.Nodes()&^l.Silent&^nodes != 0 {
		return Waits
	}
	return Acts
}

// HasNotice reports whether a node needs no notice by the fleet's clients: clients of two configurations replace a
// notice by clients of one.
func (f *Fleet) HasNotice(m Marker, run string) bool {
	return m.Phase == Provisional && m.Me.Run == run && (f.Next.Nodes == 0 || OfTwo(m.Nonce))
}

// IsOther reports whether clients of another fleet have made a nonce. For a client of two configurations, a nonce of
// either is not another's: it may belong to another step.
func (f *Fleet) IsOther(nonce string) bool {
	fleet := NonceFleet(nonce)
	return fleet != "" && !strings.Contains("+"+f.Name()+"+", "+"+fleet+"+")
}

// Verdict says whether an act may write, or why not.
type Verdict uint8

const (
	Acts      Verdict = iota
	Known             // there is nothing to give: the nodes remember
	Waits             // too few have their vote yet
	OfAnother         // nodes are of another fleet
	Apart             // nodes are of two fleets
	Changing          // a change to another fleet is under way
	NotAll            // a node has not answered, and may not be new
	Unclear           // a node cannot be asked, and may remember, or show a change
	HadVote           // nodes had a vote before
	HasTokens         // there are tokens
	InChange          // the client is part of a change that does not add the group
	Elsewhere         // other groups have tokens
	Forgotten         // by too many
	TooFew            // the nodes not lost are no quorum
)

// Fits says whether the nodes are of the client's fleet. No change leads apart: it seals a quorum of the first fleet
// before it opens one of the second, and no node comes back unsealed. So nodes found apart were given their vote as a
// fleet of their own.
func (l *Look) Fits() Verdict {
	switch {
	case l.Foreign != 0:
		return OfAnother
	case l.fleet.Next.Knows(l.Memory.Next) && l.fleet.Now.Knows(l.Memory.Now):
		return Apart // each locks keys without the other
	}
	return Acts
}

// Knows reports whether the answering nodes remember all tokens.
func (l *Look) Knows() bool { return l.Memory.Names(&l.fleet) != "" }

// Inits says whether each group gets its first vote.
func Inits(groups []*Look) []Verdict {
	all, tokens, stage := make([]Verdict, len(groups)), false, Begun
	for i, l := range groups {
		all[i] = l.init()
		tokens = tokens || l.Token > 0
		stage = max(stage, l.Memory.Stage())
	}
	for i, l := range groups {
		if (all[i] == Acts || all[i] == Waits) && tokens && (!l.Added || stage != Begun) {
			all[i] = Elsewhere
		}
	}
	return all
}

func (l *Look) init() Verdict {
	switch had := l.Marked|l.Memory.All() != 0; {
	case l.Silent != 0:
		return NotAll
	case l.Others != 0:
		return Changing
	case l.Knows():
		return Known
	case had && l.Token > 0:
		return HadVote
	case l.Token > 0:
		return HasTokens
	case l.fleet.Next.Nodes != 0 && !l.Added:
		return InChange
	}
	return l.acts()
}

// Recovers says whether answers show that too many nodes have forgotten. An unreachable node may remember, or show a
// change under way, unless an operator has named it as lost.
func (l *Look) Recovers() Verdict {
	switch {
	case l.Knows():
		return Known
	case l.Others != 0:
		return Changing
	case l.Silent&^l.Lost != 0:
		return Unclear
	case !l.fleet.IsQuorum(l.fleet.Nodes() &^ l.Silent):
		return TooFew
	}
	return l.acts()
}

// Changes says whether a change can begin: a quorum of each list has its vote.
func (l *Look) Changes() Verdict {
	switch {
	case l.Memory.Perhaps(l.Silent).Names(&l.fleet) == "":
		return Forgotten
	case l.fleet.IsQuorum(l.Memory.All()):
		return Acts
	}
	return Waits
}
