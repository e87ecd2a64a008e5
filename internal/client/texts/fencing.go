package texts

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/rules/fencing"
)

// Errors of fenced acquires, mended by no retry.
var (
	// ErrForgotten: too many nodes have forgotten the tokens.
	ErrForgotten = errors.New("redlock: too many nodes have forgotten the fencing tokens, or are new: an operator must call RecoverFencing, or InitFencing for a new fleet (never for new nodes of a change)")

	errFleet = WrongConfig("redlock: nodes hold the fencing tokens of a fleet with another configuration")
	errClock = WrongConfig("redlock: no fencing token can be made from this clock")
)

// Forgotten is ErrForgotten with the nodes.
func Forgotten(nodes string) error { return fmt.Errorf("%w (%s)", ErrForgotten, nodes) }

// WrongClock is the error of a clock that cannot be right. No token is made from it.
func WrongClock(reads time.Time) error {
	return fmt.Errorf("%w: the clock reads %s, which is not from 2020 to 2255", errClock, reads.UTC().Format(time.RFC3339))
}

// NoToken is the error of nodes that know a token beyond all that a clock makes.
func NoToken() error {
	return fmt.Errorf("%w: a node has accepted a token so large that no token below 2^53 is left", errClock)
}

// Misfit is the error of nodes that have another fleet than the client. isStep: that is the fleet before or after a change
// which the client is of.
func Misfit(nodes, has, client string, isStep bool) error {
	why := "all clients must have the same Nodes, or Groups, and MaxTTL; where these change, " +
		"ChangeFencing of a client with both, in Nodes and NextNodes, has to return before the first client with the new ones alone"
	if isStep {
		why = "they change from the one to the other and serve clients with both, in Nodes and NextNodes, or Groups and NextGroups, or MaxTTL and NextMaxTTL: " +
			"a client with the old one alone is too late, and for one with the new one alone ChangeFencing has to return first"
	}
	return fmt.Errorf("%w (%s have %s, this client has %s): %s", errFleet, nodes, fleets(has), client, why)
}

// Changing is the error of an act beside a change to a fleet whose clients have given notice to nodes.
func Changing(to, nodes string) error {
	return fmt.Errorf("%w (clients with %s use %s): nothing was changed. During a change, wait until ChangeFencing has returned; "+
		"else end these clients: %v later they do not count", errFleet, fleets(to), nodes, fencing.Lapse)
}

// fleets is a node's name of one or two configurations, as printed.
func fleets(name string) string {
	var names []string
	for name := range strings.SplitSeq(name, "+") {
		names = append(names, Quote(name))
	}
	return strings.Join(names[:min(len(names), 2)], " and ")
}

// Why a node has no vote in fenced acquires, or is not known to have one.
var (
	ErrNoFence   = errors.New("node may have forgotten fencing tokens, and has no vote yet")
	ErrElsewhere = errors.New("node holds the fencing tokens of a fleet with another configuration")
)

// NoFence is ErrNoFence with the fault of the node, or with how long it has no vote still.
func NoFence(fault error, left time.Duration) error {
	switch {
	case fault != nil:
		return fmt.Errorf("%w: %w", ErrNoFence, fault)
	case left > 0:
		return fmt.Errorf("%w: its quarantine ends in %v, restart no other node until then", ErrNoFence, left.Round(time.Millisecond))
	}
	return ErrNoFence
}

// WithoutVote is failures of nodes, in one line.
type WithoutVote []error

func (e WithoutVote) Error() string {
	var texts []string
	for _, err := range e {
		texts = append(texts, err.Error())
	}
	return "redlock: nodes without a fenced vote: " + strings.Join(texts, ", ")
}

func (e WithoutVote) Unwrap() []error { return e }

var (
	errNotNew  = WrongConfig("redlock: InitFencing is for nodes that are new")
	errUnclear = errors.New("redlock: it is not clear that too many nodes have forgotten the fencing tokens")
)

// Act is what an act of an operator has seen at nodes, each list as text.
type Act struct {
	Old, New  string // with clients of one configuration alone
	Set       string // the key of the tokens
	Voting    string // had a vote before
	Largest   fencing.Token
	Forgotten string
	Silent    string
	Unknown   string // silent, and perhaps not lost
	Faults    WithoutVote
}

// Refused is why an act is refused. It has changed nothing.
func (a *Act) Refused(v fencing.Verdict) error {
	switch v {
	case fencing.Apart:
		return fmt.Errorf("%w: %s serve clients with the old list alone, and %s serve clients with the new list alone, but there was no change between the lists: "+
			"InitFencing was called by a client with the new list alone. Stop all such clients, and remove the marker of the nodes of the new list alone, "+
			"which keeps the tokens: ZREMRANGEBYSCORE %s -inf -1", errFleet, a.Old, a.New, a.Set)
	case fencing.HadVote:
		return fmt.Errorf("%w: nothing was changed, since %s had a vote before: RecoverFencing is for a fleet that has lost its tokens", errNotNew, a.Voting)
	case fencing.HasTokens:
		return fmt.Errorf("%w: nothing was changed, since there are tokens up to %d: RecoverFencing is for a fleet that has lost some", errNotNew, a.Largest)
	case fencing.InChange:
		return fmt.Errorf("%w: nothing was changed: this client has a next list, and the change does not add this group. InitFencing is for clients of Nodes alone, RecoverFencing for a fleet that has lost its tokens", errNotNew)
	case fencing.Elsewhere:
		return fmt.Errorf("%w: nothing was changed: the nodes of this group have no tokens, and other groups have some. RecoverFencing is for a group that has lost its tokens", engine.ErrConfig)
	case fencing.Forgotten:
		return Forgotten(a.Forgotten)
	case fencing.NotAll:
		return fmt.Errorf("%w: nothing was changed, since each node of a new fleet must have answered: %w", errNotNew, a.Faults)
	case fencing.Unclear:
		return fmt.Errorf("%w: nothing was changed, since %s cannot be asked and may remember: start them, or name them as lost if they never come back: %w",
			errUnclear, a.Unknown, a.Faults)
	case fencing.TooFew:
		return fmt.Errorf("%w: nothing was changed, since no quorum is left without %s: start new servers under these names, without data, and call again",
			engine.ErrNoQuorum, a.Silent)
	}
	return nil
}
