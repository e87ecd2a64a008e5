package fencing

import "github.com/redlock-go/redlock/quorum"

// Advice is what follows a lost round.
type Advice uint8

const (
	Pause  Advice = iota // as on the plain path: held by others, or too few nodes have voted
	Again                // at once, with a new nonce and a larger token: refusals were about the number
	Closed               // too many have forgotten: an operator must initialize the fleet
	Misfit               // a fleet of another configuration, or no token: an error for good
)

// Refusals is the nodes of one round, by what they answered.
type Refusals [Invalid + 1]quorum.Set

// Add notes the answer of a node.
func (r *Refusals) Add(node int, a Answer) { r[a.Code].Add(node) }

// Advise decides what to do after a lost round. shown is the markers shown by nodes: a node without one may remember,
// unless it has answered Amnesia.
func (r *Refusals) Advise(f *Fleet, shown Memory) Advice {
	number := r[Stale] | r[Low]
	switch {
	case f.blocks(r[Foreign] | r[Invalid]):
		return Misfit
	case r[Amnesia] != 0 && shown.Perhaps(f.Nodes()&^shown.All()).Without(r[Amnesia]).Names(f) == "":
		return Closed
	case number != 0 && f.IsQuorum(r[OK]|number) && !f.blocks(r[Held]):
		return Again
	}
	return Pause
}
