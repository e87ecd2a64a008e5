package fence

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/redlock-go/redlock/internal/fencing"
)

// View is what the nodes of a group show before an act. The acts look at all groups before they
// write to a node of any.
type View struct {
	client *Client
	memory fencing.Memory
	token  uint64 // the largest that any shows
	silent uint64 // nodes that have not answered, a bit each
	marked uint64 // nodes that have a marker of an earlier run
	faults []error
	other  string // the fleet whose clients have given notice to nodes, by which another change is under way
	others uint64 // those nodes
}

// Look asks all nodes of a group at once. The error says that nodes are of another fleet, or of two.
func (c *Client) Look() (v View, err error) {
	v.client = c
	foreign := false
	for node, s := range c.askAll(fencing.ShowVerb, nil) {
		switch {
		case s.err != nil:
			v.silent |= bit(node)
			v.faults = append(v.faults, fmt.Errorf("%s: %w", c.cfg.Nodes[node], s.err))
			continue
		case s.answer.Code == fencing.Foreign:
			foreign = true
			continue
		}
		v.token = max(v.token, s.answer.Token)
		switch m := fencing.ParseMarker(s.answer.Text); {
		case m.Serves(fencing.Me{Fleet: c.fleet.Name(), Run: s.run}):
			v.memory.Add(&c.fleet, node, m)
		case m.Phase == fencing.Voting:
			v.marked |= bit(node)
		case m.Phase == fencing.Provisional && c.isOther(m.Nonce):
			v.other = fencing.NonceFleet(m.Nonce)
			v.others |= bit(node)
		}
	}
	switch {
	case foreign:
		return v, c.misfit()
	case v.memory.IsSplit(&c.fleet):
		return v, fmt.Errorf("%w: %s serve clients with the old list alone, %s those with the new one alone, and nothing has made a change between them: "+
			"InitFencing was called by a client with the new list alone. Stop all such clients, and delete the key %s on the nodes of the new list alone",
			errFleet, c.names(v.memory.Now), c.names(v.memory.Next), c.cfg.Set)
	}
	return v, nil
}

// isOther reports whether clients of another fleet have made a nonce. One of a single configuration of a client of two
// is none: it may be of another step.
func (c *Client) isOther(nonce string) bool {
	fleet := fencing.NonceFleet(nonce)
	return fleet != "" && !strings.Contains("+"+c.fleet.Name()+"+", "+"+fleet+"+")
}

// Knows reports whether the nodes that have answered remember all tokens.
func (v *View) Knows() bool { return v.memory.Names(&v.client.fleet) != "" }

// HasTokens reports whether any node shows one.
func (v *View) HasTokens() bool { return v.token > 0 }

// Stage is how far a change of the group has come.
func (v *View) Stage() fencing.Stage { return v.memory.Stage() }

// CheckNew is the error that no first vote can be given: a node has not answered, or is not new.
func (v *View) CheckNew(inChange bool) error {
	c := v.client
	switch all := v.memory.All(); {
	case v.silent != 0:
		return fmt.Errorf("%w: nothing was changed, since each node of a new fleet must have answered: %w", errNotNew, nodesError(v.faults))
	case v.others != 0:
		return v.checkOther()
	case v.Knows():
		return nil
	case v.marked|all != 0 && v.token > 0:
		return fmt.Errorf("%w: nothing was changed, since %s had a vote before: RecoverFencing is for a fleet that has lost its tokens", errNotNew, c.names(v.marked|all))
	case v.token > 0:
		return fmt.Errorf("%w: nothing was changed, since there are tokens up to %d: RecoverFencing is for a fleet that has lost some", errNotNew, v.token)
	case inChange:
		return fmt.Errorf("%w: nothing was changed, since clients of a change are no new fleet: InitFencing is for clients with Nodes alone, and RecoverFencing for a fleet that has lost its tokens", errNotNew)
	}
	return nil
}

func (v *View) checkOther() error {
	return fmt.Errorf("%w (clients with %s bring in %s): nothing was changed; where they change from the one to the other ChangeFencing has to return first, "+
		"and where none of them runs any more the key %s on those nodes is to be deleted", errFleet, quoted(v.other), v.client.names(v.others), v.client.cfg.Set)
}

// CheckForgotten reports whether the answers show that too many nodes have forgotten. The error is that they
// may not have. Nodes that cannot be reached have not, unless they are in lost.
func (v *View) CheckForgotten(lost []string) (forgotten bool, err error) {
	c := v.client
	var named uint64
	for node, name := range c.cfg.Nodes {
		for _, l := range lost {
			if l == name {
				named |= bit(node)
			}
		}
	}
	switch {
	case v.Knows():
		return false, nil
	case v.others != 0:
		return false, v.checkOther()
	}
	perhaps := v.silent &^ named
	if v.memory.Perhaps(perhaps).Names(&c.fleet) != "" {
		return false, fmt.Errorf("%w: nothing was changed, since %s may remember and cannot be asked: start them, or name those as lost that never come back: %w",
			errUnclear, c.names(perhaps), nodesError(v.faults))
	}
	return true, nil
}

// CheckChange reports whether a change can begin: a quorum of each list has its vote. The error is that
// it never will without an operator.
func (v *View) CheckChange() (ready bool, err error) {
	f := &v.client.fleet
	if v.memory.Perhaps(v.silent).Names(f) == "" {
		return false, fmt.Errorf("%w (%s)", ErrForgotten, v.client.names(f.Nodes()&^v.silent&^v.memory.All()))
	}
	return f.IsQuorum(v.memory.All()), nil
}

// said is what one node has answered to askAll.
type said struct {
	answer fencing.Answer
	err    error
	run    string
}

// askAll asks nodes at once, and waits for all answers. args is nil, or returns those for a node, and
// false for one that is not asked.
func (c *Client) askAll(verb fencing.Verb, args func(node int) ([]string, bool)) map[int]said {
	bell, asked := newBell(), map[int]*question{}
	for left := c.fleet.Nodes(); left != 0; left &= left - 1 {
		node := bits.TrailingZeros64(left)
		var list []string
		if args != nil {
			var is bool
			if list, is = args(node); !is {
				continue
			}
		}
		asked[node] = c.ask(node, bell.ring, verb, list...)
	}
	answers := map[int]said{}
	for ending := false; len(asked) > 0; ending = !bell.await(c.cfg.Ending) {
		for node, x := range asked {
			a, err, there := x.take()
			if ending && !there {
				a, err, there = fencing.Answer{}, errNoAnswer, true
			}
			if there {
				answers[node] = said{a, err, x.life.run}
				delete(asked, node)
			}
		}
		if len(asked) == 0 {
			break
		}
	}
	return answers
}
