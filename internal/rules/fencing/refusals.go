package fencing

import "github.com/redlock-go/redlock/quorum"

// Advice is what follows a lost round. All but Again need the same as on the plain path: a pause,
// or an error.
type Advice uint8

// The advices, in order of precedence.
const (
	Misfit  Advice = iota + 1 // a fleet of another configuration, or no token: an error for good
	Closed                    // too many have forgotten: an operator must initialize the fleet
	Taken                     // held by others: wait for the lock
	Again                     // at once, with a new nonce and a larger token: refusals were about the number
	Missed                    // votes of forgetful nodes were missing: bring them back, and try after a pause
	Unheard                   // too few nodes answered
)

// Refusals is what the nodes of one round answered. An OK is a vote, counted elsewhere; Refusals
// notes its node only.
type Refusals struct {
	ok, held, number, amnesia, misfit quorum.Set
}

// Add notes the answer of a node.
func (r *Refusals) Add(node int, a Answer) {
	bit := quorum.Only(node)
	switch a.Code {
	case OK:
		r.ok |= bit
	case Held:
		r.held |= bit
	case Stale, Low:
		r.number |= bit
	case Amnesia:
		r.amnesia |= bit
	case Foreign, Invalid:
		r.misfit |= bit
	}
}

// Forgotten is the nodes with the answer Amnesia: each is to be rejoined.
func (r *Refusals) Forgotten() quorum.Set { return r.amnesia }

// Advise decides what to do after a lost round. shown is the markers shown by nodes: a node without
// one may remember, unless it has answered Amnesia.
func (r *Refusals) Advise(f *Fleet, shown Memory) Advice {
	switch {
	case f.blocks(r.misfit):
		return Misfit
	case r.amnesia != 0 && shown.Perhaps(f.Nodes()&^shown.All()).Without(r.amnesia).Names(f) == "":
		return Closed
	case f.blocks(r.held):
		return Taken
	case r.number != 0 && f.IsQuorum(r.ok|r.number):
		return Again
	case r.amnesia != 0 && f.IsQuorum(r.ok|r.held|r.amnesia|r.number):
		return Missed
	case f.IsQuorum(r.ok | r.held | r.number):
		return Taken // a split vote, or a decisive Held
	}
	return Unheard
}
