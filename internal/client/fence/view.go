package fence

import (
	"fmt"
	"slices"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/texts"
	"github.com/redlock-go/redlock/internal/rules/fencing"
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
	case fencing.Changing:
		return texts.Changing(v.Other, c.names(v.Others))
	}
	all := texts.Act{
		Old: c.names(v.Memory.Now), New: c.names(v.Memory.Next), Set: c.cfg.Set, Voting: c.names(v.Marked | v.Memory.All()), Largest: v.Token,
		Forgotten: c.names(c.fleet.Nodes() &^ v.Silent &^ v.Memory.All()), Silent: c.names(v.Silent), Unknown: c.names(v.Silent &^ v.Lost), Faults: v.faults,
	}
	return all.Refused(v.verdict)
}
