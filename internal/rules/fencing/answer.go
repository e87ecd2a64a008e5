package fencing

import (
	"strconv"
	"time"

	"github.com/redlock-go/redlock/quorum"
)

// Token is a fencing token, or a bound of tokens. It is no time, though clients take their time, in µs, for one.
type Token uint64

func (t Token) String() string { return strconv.FormatUint(uint64(t), 10) }

// MaxToken is the largest token: a score of a sorted set is a float64, and counts without gaps to here. In microseconds
// it is the year 2255.
const MaxToken = 1<<53 - 1

// Code is the kind of a node's answer.
type Code uint8

// The codes, as they are on the wire. Zero is none of them.
const (
	OK      Code = iota + 1 // done
	Held                    // the lock key exists; Token is E
	Stale                   // the proposed token is not above F, the key's own E; Token is E
	Low                     // it is not above the floor, here E; Token is E
	Amnesia                 // the node has no vote; Text is its provisional nonce, or empty
	Active                  // the node needs no NOTICE or REJOIN: it has a vote
	Foreign                 // Text is the marker of a differently configured fleet
	Gone                    // the lock key does not hold the nonce
	Invalid                 // no possible token, or no block
)

// Answer is the reply of a node's script. Each reply of [MemberScript] shows the node: Token is its largest, and Text
// its marker.
type Answer struct {
	Code  Code
	Token Token
	Text  string
	Age   time.Duration // of Show: the age of the node's nonce, by its clock
}

// Advice is the next act after a lost round.
type Advice uint8

const (
	Pause  Advice = iota // as on the plain path: held by others, or too few nodes have voted
	Again                // at once, with a new nonce and a larger token: refusals were about the number
	Closed               // too many have forgotten: an operator must initialize the fleet
	Misfit               // a fleet of another configuration, or no token: an error for good
)

// Answers holds the nodes of one round, by their answers.
type Answers [Invalid + 1]quorum.Set

// Add notes the answer of a node.
func (r *Answers) Add(node int, a Answer) { r[a.Code].Add(node) }

// Advise decides the next act after a lost round. shown holds the markers shown by nodes: a node without one may
// remember, unless it has answered Amnesia.
func (r *Answers) Advise(f *Fleet, shown Memory) Advice {
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
