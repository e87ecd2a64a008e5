package fence

import (
	"context"
	"log/slog"
	"slices"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/texts"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/quorum"
)

// order is an act's order to a client: what its nodes without a vote get, while the act is under way.
//
// The operator's number holds for all that was forgotten when the act looked. A node that forgets later may have
// voted since, by another operator's call, for locks beyond the number. So the number is used for the nonces shown by
// nodes at the look; all other nodes are left to the nodes with a vote by then.
type order struct {
	atLeast fencing.Token  // the largest token seen by the resources; 0: there were no tokens before
	names   string         // what markers are to name
	nonces  map[int]string // of nodes at the look, where too few remember: these get their vote by the order
	begun   quorum.Set     // nodes with a quarantine of the order's own
	shown   fencing.Token  // the largest token shown at the look, in any group
	now     uint64         // the client's time when it began
	began   clock.Instant
}

// order leaves an order, to be withdrawn.
func (c *Client) order(o *order) (withdraw func()) {
	c.mu.Lock()
	c.orders = append(c.orders, o)
	c.mu.Unlock()
	c.cfg.Ring()
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.orders = slices.DeleteFunc(c.orders, func(x *order) bool { return x == o })
	}
}

// given has a recovery follow the orders, and returns the least floor.
func (c *Client) given(r *recovery) (floor fencing.Token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Given = ""
	for _, o := range c.orders {
		if o.nonces[r.Node] != "" && !o.begun.Has(r.Node) {
			o.begun.Add(r.Node)
			r.Recovery = fencing.Recovery{Fleet: c.fleet, Node: r.Node}
		}
		if r.Nonce != "" && r.Nonce == o.nonces[r.Node] {
			r.Given = o.names
		}
		floor = max(floor, c.floor(o))
	}
	return floor
}

// floor is the floor of a node about to get its vote, after its quarantine. A clock and nodes without a vote are
// trusted only where too few nodes have one. A new fleet needs no floor: a call after one cut off finds no token, and
// begins again.
func (c *Client) floor(o *order) fencing.Token {
	switch {
	case o.atLeast == 0:
		return 0
	case o.nonces == nil:
		return fencing.InitFloor(o.atLeast, block, 0, 0)
	}
	passed := c.cfg.Clock.Now().Sub(o.began).Microseconds()
	return fencing.InitFloor(o.atLeast, block, max(o.shown, c.largest), o.now+uint64(passed))
}

// vote gives nodes their vote: by the order where too few remember, else by what the others remember. It waits for
// the longest TTL, and returns when a quorum of each list has its vote. A sick, slow or just restarted node delays it
// to 1.25 of this TTL, and is named in the log.
func (a Acts) vote(ctx context.Context, views []view, atLeast fencing.Token) error {
	now, _ := a.Groups[0].micros() // it was right when the act began
	var stage fencing.Stage
	shown, alone := fencing.Token(0), false
	for i := range views {
		v := &views[i]
		shown, alone = max(shown, v.Token), alone || v.verdict == fencing.Acts
		if atLeast > 0 {
			stage = max(stage, v.Memory.Stage())
		}
	}
	if atLeast > 0 {
		floor := fencing.InitFloor(atLeast, block, 0, 0)
		a.ask(fencing.RaiseVerb, each(floor.String()))
		if alone && shown > atLeast {
			a.Groups[0].log(slog.LevelWarn, "redlock: RecoverFencing was given a smaller token than nodes show; the greater counts", "atLeast", uint64(atLeast), "shown", uint64(shown))
		}
	}
	for i := range views {
		v, c := &views[i], a.Groups[i]
		o := order{atLeast: atLeast, names: c.fleet.At(stage), shown: shown, now: now, began: c.cfg.Clock.Now()}
		if v.verdict == fencing.Acts {
			o.nonces = v.Nonces
		}
		v.least, v.until = o.began.Add(c.fleet.Quarantine*5/4), clock.Never
		defer c.order(&o)()
	}
	errs := make([]error, len(views))
	for {
		left := false
		for i := range views {
			if v := &views[i]; !v.done {
				v.done, errs[i] = v.turn()
				left = left || !v.done
			}
		}
		if !left {
			return a.Join(errs)
		}
		if err := a.pause(ctx, fencing.MinPause); err != nil {
			return err
		}
	}
}

// turn reports whether the group has got what it is given. The error ends the group's part.
func (v *view) turn() (done bool, err error) {
	c, now, missed := v.client, v.client.cfg.Clock.Now(), quorum.Set(0)
	c.mu.Lock()
	votes := c.memory.All()
	for node := range c.nodes {
		m := fencing.ParseMarker(c.nodes[node].marker)
		if v.verdict == fencing.Acts && m.Phase == fencing.Provisional && c.fleet.IsOther(m.Nonce) {
			done, err = true, texts.Changing(fencing.NonceFleet(m.Nonce), c.names(quorum.Only(node)))
		}
	}
	c.mu.Unlock()
	if done {
		return done, err
	}
	for node := range (c.fleet.Nodes() &^ votes).All() {
		if c.cfg.IsUp(node) {
			missed.Add(node)
		}
	}
	if v.until == clock.Never && c.fleet.IsQuorum(votes) {
		v.until = max(v.least, now.Add(fencing.MinPause))
	}
	if v.until == clock.Never || missed != 0 && now < v.until {
		return false, nil
	}
	missed = c.fleet.Nodes() &^ votes
	if missed != 0 {
		c.log(slog.LevelWarn, "redlock: nodes have no fenced vote yet; clients will restore it", "nodes", c.names(missed), "error", c.Votes())
	}
	return true, nil
}
