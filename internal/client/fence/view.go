package fence

import (
	"fmt"
	"slices"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/quorum"
)

// view is what the nodes of a group show before an act, and then the act's progress there.
type view struct {
	fencing.Look
	client  *Client
	faults  []error // of the nodes that have not answered
	verdict fencing.Verdict

	least, until clock.Instant // when the nodes still without a vote are left to the others
	done         bool
}

// view is the view of the group, by the answers of its nodes, of which some never come back.
func (c *Client) view(asked []*question, lost []string) view {
	v := view{Look: fencing.BeginLook(c.fleet), client: c}
	v.Added = c.cfg.IsNew
	for _, x := range asked {
		switch name := c.cfg.Nodes[x.node]; {
		case x.err == nil:
			v.Shown(x.node, x.life.run, x.answer)
			continue
		case slices.Contains(lost, name):
			v.Lost.Add(x.node)
			fallthrough
		default:
			v.Silent.Add(x.node)
			v.faults = append(v.faults, fmt.Errorf("%s: %w", name, x.err))
		}
	}
	return v
}

// refusal says why an act is refused, or is nil.
func (v *view) refusal() error {
	c := v.client
	switch v.verdict {
	case fencing.OfAnother:
		return c.misfit()
	case fencing.Apart:
		return fmt.Errorf("%w: %s serve clients with the old list alone, and %s serve clients with the new list alone, but there was no change between the lists: "+
			"InitFencing was called by a client with the new list alone. Stop all such clients, and remove the marker of the nodes of the new list alone, "+
			"which keeps the tokens: ZREMRANGEBYSCORE %s -inf -1", errFleet, c.names(v.Memory.Now), c.names(v.Memory.Next), c.cfg.Set)
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
	case fencing.TooFew:
		return fmt.Errorf("%w: nothing was changed, since no quorum is left without %s: start new servers under these names, without data, and call again",
			engine.ErrNoQuorum, c.names(v.Silent))
	}
	return nil
}

// changing is the error of an act beside a change to a fleet whose clients have given notice to nodes.
func (c *Client) changing(to string, nodes quorum.Set) error {
	return fmt.Errorf("%w (clients with %s use %s): nothing was changed. During a change, wait until ChangeFencing has returned; "+
		"else end these clients: %v later they do not count", errFleet, quoted(to), c.names(nodes), fencing.Lapse)
}
