package harness

import "time"

// Fault is what is wrong with the first node while a cell is counted. It is the
// first because a client that asks its nodes in order then meets it first.
type Fault string

// The faults.
const (
	NoFault Fault = "none"
	// Slow answers [slowness] late, always.
	Slow Fault = "slow"
	// Hung is a process that stands still (SIGSTOP): its kernel accepts
	// connections and bytes, nobody answers.
	Hung Fault = "hung"
	// Refusing has lost all connections, and refuses new ones.
	Refusing Fault = "refusing"
	// BlackHole swallows what it is sent, and does not even answer to a
	// connect.
	BlackHole Fault = "blackhole"
	// Back dies after a third of the window and is back, empty, after two
	// thirds. Its result has a time line.
	Back Fault = "back"
)

// Faults lists every fault, the healthy case first.
var Faults = []Fault{NoFault, Slow, Hung, Refusing, BlackHole, Back}

// slowness is what Slow adds to a round trip.
const slowness = 20 * time.Millisecond

// describe completes a sentence that begins with the node.
func (f Fault) describe() string {
	switch f {
	case Slow:
		return "slow (+" + slowness.String() + ")"
	case BlackHole:
		return "black-holed"
	case Back:
		return "dies and comes back"
	}
	return string(f)
}

// Disturbance is something that happens to the nodes in the course of a cell.
type Disturbance struct {
	Strike, Heal func() error
	// Passing strikes and heals inside the window, at its thirds, in place of
	// before and after.
	Passing bool
}
