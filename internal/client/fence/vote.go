package fence

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/quorum"
)

// order is an act's order for the nodes without a vote.
type order struct {
	atLeast fencing.Token // the largest token seen by the resources
	isNew   bool          // there were no tokens before
	stage   fencing.Stage // of a change, as shown by the nodes of all groups

	shown func() fencing.Token // the largest token shown by nodes when the first quarantine is over
}

// floor is the floor of a node that gets its vote now, after its quarantine. A clock and nodes without a vote are
// trusted only where too few nodes have one. A new fleet needs no floor: a call after one cut off finds no token, and
// begins again.
func (v *View) floor() fencing.Token {
	switch {
	case v.isNew || !v.alone && v.atLeast == 0:
		return 0
	case !v.alone:
		return fencing.InitFloor(v.atLeast, block, 0, 0)
	}
	now, _ := v.client.micros() // it was right when the act began
	return fencing.InitFloor(v.atLeast, block, v.shown(), now)
}

// vote gives nodes their vote: by the order where too few remember, else by what the others remember. It waits for
// the longest TTL, and returns when a quorum of each list has its vote. A sick, slow or just restarted node delays it
// to 1.25 of this TTL, and is named in the log.
//
// The operator's number holds for all that was forgotten when the act looked. A node that forgets later may have
// voted since, by another operator's call, for locks beyond the number. So the number is used for the nonces shown by
// nodes at the look; all other nodes are left to the nodes with a vote by then.
func (a Acts) vote(ctx context.Context, views []View, o order) error {
	if floor := fencing.InitFloor(o.atLeast, block, 0, 0); o.atLeast > 0 {
		a.ask(fencing.RaiseVerb, each(floor.String()))
	}
	o.shown = sync.OnceValue(func() fencing.Token { return a.shown(views, o.atLeast) })
	answers, errs := newBell(), make([]error, len(views))
	for i := range views {
		views[i].begin(&o)
	}
	for {
		pause, left := clock.Forever, false
		for i := range views {
			if v := &views[i]; !v.done {
				var again time.Duration
				again, errs[i] = v.turn(answers)
				pause, left = min(pause, again), left || !v.done
			}
		}
		if !left {
			return a.Join(errs)
		}
		if err := a.pause(ctx, min(max(pause, time.Millisecond), fencing.MinPause), answers); err != nil {
			return err
		}
	}
}

// shown is the largest token shown by nodes in groups where too many have forgotten.
func (a Acts) shown(views []View, atLeast fencing.Token) (shown fencing.Token) {
	for _, asked := range a.ask(fencing.ShowVerb, func(group, _ int) ([]string, bool) { return nil, views[group].alone }) {
		for _, x := range asked {
			if x.answer.Code == fencing.OK {
				shown = max(shown, x.answer.Token)
			}
		}
	}
	if shown > atLeast {
		a.Groups[0].log(slog.LevelWarn, "redlock: RecoverFencing was given a smaller token than nodes show; the greater counts", "atLeast", uint64(atLeast), "shown", uint64(shown))
	}
	return shown
}

// begin begins to give the nodes of a group their vote.
func (v *View) begin(o *order) {
	c := v.client
	v.order, v.began, v.until, v.all = o, c.cfg.Clock.Now(), clock.Never, make([]recovery, len(c.cfg.Nodes))
	for node := range v.all {
		v.all[node] = c.recovery(node)
		if v.alone && v.Nonces[node] != "" {
			v.all[node].Given = c.fleet.At(o.stage)
		}
	}
}

// turn does what is possible now, and returns the pause to the next turn. The error ends the group's part.
func (v *View) turn(answers bell) (pause time.Duration, err error) {
	c, votes := v.client, quorum.Set(0)
	pause = clock.Forever
	for node := range v.all {
		r := &v.all[node]
		again := c.advance(r, answers.ring, v)
		switch nonce := r.Nonce; {
		case r.Done:
			c.voting(node, r.connection)
			votes.Add(node)
			continue
		case nonce == "":
		case v.alone && c.fleet.IsOther(nonce):
			v.done = true
			return pause, c.changing(fencing.NonceFleet(nonce), quorum.Only(node))
		case nonce != v.Nonces[node] && v.alone && r.Given != "":
			*r = c.recovery(node)
		}
		if c.cfg.IsUp(node) {
			pause = min(pause, again, fencing.MaxPause)
		}
	}
	now := c.cfg.Clock.Now()
	if v.until == clock.Never && c.fleet.IsQuorum(votes) {
		v.until = max(v.began.Add(c.fleet.Quarantine*5/4), now.Add(fencing.MinPause))
	}
	v.done = v.until != clock.Never && (pause == clock.Forever || now >= v.until)
	if v.done {
		if missed := c.fleet.Nodes() &^ votes; missed != 0 {
			c.log(slog.LevelWarn, "redlock: nodes have no fenced vote yet; clients will restore it", "nodes", c.names(missed), "error", c.Votes())
		}
	}
	return pause, nil
}
