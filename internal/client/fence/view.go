package fence

import (
	"fmt"
	"slices"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/quorum"
)

// View is what the nodes of a group show before an act, and then the act's progress there.
type View struct {
	fencing.Look
	client *Client
	faults []error // of the nodes that have not answered
	alone  bool    // too few nodes remember: the others get their vote by the order

	*order // what follows is of vote
	done   bool
	all    []recovery
	began  clock.Instant
	until  clock.Instant // then the nodes still without a vote are left to the others
}

// view is the view of the group, by the answers of its nodes.
func (c *Client) view(asked []*question) View {
	v := View{Look: fencing.BeginLook(c.fleet), client: c}
	for _, x := range asked {
		if x.err != nil {
			v.Silent.Add(x.node)
			v.faults = append(v.faults, fmt.Errorf("%s: %w", c.cfg.Nodes[x.node], x.err))
			continue
		}
		v.Shown(x.node, x.life.run, x.answer)
		if !v.Memory.All().Has(x.node) && v.Nonces[x.node] == "" {
			c.NoVote(x.node, fencing.Answer{Code: fencing.Amnesia}) // it is given notice now
		}
	}
	return v
}

// name notes nodes that never come back.
func (v *View) name(lost []string) {
	for node, name := range v.client.cfg.Nodes {
		if slices.Contains(lost, name) {
			v.Lost.Add(node)
		}
	}
}

// refusal says why an act is refused, or is nil.
func (v *View) refusal(verdict fencing.Verdict) error {
	c := v.client
	switch verdict {
	case fencing.OfAnother:
		return c.misfit()
	case fencing.Apart:
		return fmt.Errorf("%w: %s serve clients with the old list alone, and %s serve clients with the new list alone, but there was no change between the lists: "+
			"InitFencing was called by a client with the new list alone. Stop all such clients, and delete the key %s on the nodes of the new list alone",
			errFleet, c.names(v.Memory.Now), c.names(v.Memory.Next), c.cfg.Set)
	case fencing.Changing:
		return c.changing(v.Other, v.Others)
	case fencing.HadVote:
		return fmt.Errorf("%w: nothing was changed, since %s had a vote before: RecoverFencing is for a fleet that has lost its tokens", errNotNew, c.names(v.Marked|v.Memory.All()))
	case fencing.HasTokens:
		return fmt.Errorf("%w: nothing was changed, since there are tokens up to %d: RecoverFencing is for a fleet that has lost some", errNotNew, v.Token)
	case fencing.InChange:
		return fmt.Errorf("%w: nothing was changed: this client has a next list, and the change does not add this group. InitFencing is for clients of Nodes alone, RecoverFencing for a fleet that has lost its tokens", errNotNew)
	case fencing.Elsewhere:
		return fmt.Errorf("%w: nothing was changed: the nodes of this group have no tokens, and other groups have some. RecoverFencing is for a group that has lost its tokens", engine.ErrConfig)
	case fencing.Forgotten:
		return fmt.Errorf("%w (%s)", ErrForgotten, c.names(c.fleet.Nodes()&^v.Silent&^v.Memory.All()))
	case fencing.NotAll:
		return fmt.Errorf("%w: nothing was changed, since each node of a new fleet must have answered: %w", errNotNew, nodesError(v.faults))
	case fencing.Unclear:
		return fmt.Errorf("%w: nothing was changed, since %s cannot be asked and may remember: start them, or name them as lost if they never come back: %w",
			errUnclear, c.names(v.Silent&^v.Lost), nodesError(v.faults))
	}
	return nil
}

// changing is the error of an act beside a change to a fleet whose clients have given notice to nodes.
func (c *Client) changing(to string, nodes quorum.Set) error {
	return fmt.Errorf("%w (clients with %s use %s): nothing was changed. During a change, wait until ChangeFencing has returned; "+
		"if no such client runs any more, delete the key %s on those nodes", errFleet, quoted(to), c.names(nodes), c.cfg.Set)
}
