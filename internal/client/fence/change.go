package fence

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/rules/fencing"
)

// Change has clients of the present configuration refused, and clients of the next one served: see [fencing.Looks].
// It waits until a quorum of each list of each group has its vote, and then for the longest TTL of both. Each step
// may be repeated: a call that ends early is made again, and two at once do the work of one. A call after a confirmed
// one opens the nodes it has missed.
//
// A key may go from any group to any other, so all groups are looked at together. None serves clients of the next
// groups alone before all have refused clients of the present ones for the longest TTL, and each knows the largest
// token of all.
func (a Acts) Change(ctx context.Context) error {
	for _, c := range a.Groups {
		if c.isFenced() && !c.IsChanging() {
			return fmt.Errorf("%w: ChangeFencing needs a client of both lists: NextNodes, NextGroups or NextMaxTTL", engine.ErrConfig)
		}
	}
	if _, err := a.views(ctx, act{name: "ChangeFencing", decide: apart((*fencing.Look).Changes)}); err != nil {
		return err
	}
	var before fencing.Looks
	for floor := fencing.Token(0); ; {
		pause := fencing.MinPause
		now, err := a.seal()
		floor = max(floor, now.Token())
		switch {
		case err != nil:
			return err
		case now.Are(true, before):
			if a.open(now, floor) {
				return nil
			}
		case now.Are(false, nil):
			before = now
			for _, c := range a.Groups {
				pause = c.fleet.Quarantine // the locks of the clients refused from now on end
				c.log(slog.LevelInfo, "redlock: nodes refuse clients with the old configuration alone, and will serve clients with the new one alone",
					"old", c.fleet.Now.Name, "new", c.fleet.Next.Name, "wait", pause)
			}
		}
		if err := a.pause(ctx, pause); err != nil {
			return err
		}
	}
}

// seal has nodes refuse clients of the present configuration alone, and returns what all show then.
func (a Acts) seal() (fencing.Looks, error) {
	looks, errs := make(fencing.Looks, len(a.Groups)), make([]error, len(a.Groups))
	for i, asked := range a.ask(fencing.SealVerb, each(a.Groups[0].nonce())) {
		v := a.Groups[i].view(asked, nil)
		if v.Foreign != 0 {
			errs[i] = a.Groups[i].misfit()
		}
		looks[i] = &v.Look
	}
	return looks, a.Join(errs)
}

// open has nodes of the next configuration serve clients of it alone. It reports whether a quorum of each group does.
func (a Acts) open(looks fencing.Looks, floor fencing.Token) bool {
	all := true
	for i, asked := range a.ask(fencing.RejoinVerb, func(group, node int) ([]string, bool) {
		nonce, sealed := looks[group].Opens(node)
		return []string{nonce, floor.String(), a.Groups[group].fleet.Next.Name}, sealed
	}) {
		c, opened := a.Groups[i], looks[i].Memory.Next
		for _, x := range asked {
			if x.answer.Code == fencing.OK {
				opened.Add(x.node)
			}
		}
		if !c.fleet.Next.IsQuorum(opened) {
			all = false
			continue
		}
		c.log(slog.LevelInfo, "redlock: nodes serve clients with the new configuration alone", "new", c.fleet.Next.Name, "nodes", c.names(opened))
		if missed := c.fleet.Next.Nodes &^ opened; missed != 0 {
			c.log(slog.LevelWarn, "redlock: nodes were missed by the change, and do not serve clients with the new configuration alone: call ChangeFencing again once they are up",
				"nodes", c.names(missed))
		}
	}
	return all
}
