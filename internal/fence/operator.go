package fence

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/redlock-go/redlock/internal/clock"
	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/fencing"
	"github.com/redlock-go/redlock/internal/texts"
	"github.com/redlock-go/redlock/quorum"
)

// Errors of acts that have changed nothing.
var (
	errNotNew  = texts.WrongConfig("redlock: InitFencing is for nodes that are new")
	errUnclear = errors.New("redlock: it is not clear that too many nodes have forgotten the fencing tokens")
)

// Order is what an act has nodes do that have no vote.
type Order struct {
	AtLeast uint64        // the largest token that the resources have seen
	Alone   bool          // too few nodes remember: the others get their vote by this order
	New     bool          // there were no tokens before
	Stage   fencing.Stage // of a change, as the nodes of all groups show
}

// operator is an order that is carried out.
type operator struct {
	Order
	warned bool
}

// floor is that of a node which gets its vote now, after its quarantine. A clock is trusted, and
// nodes without a vote are, only where those that have one are too few. A new fleet needs none: a call that was cut
// off finds no token, and begins again.
func (o *operator) floor(c *Client) uint64 {
	if o.New || !o.Alone && o.AtLeast == 0 {
		return 0
	}
	if !o.Alone {
		return fencing.InitFloor(o.AtLeast, block, 0, 0)
	}
	var shown uint64
	for _, s := range c.askAll(fencing.ShowVerb, nil) {
		if s.err == nil && s.answer.Code == fencing.OK {
			shown = max(shown, s.answer.Token)
		}
	}
	if log := c.cfg.Logger; log != nil && shown > o.AtLeast && !o.warned {
		o.warned = true
		log.Warn("redlock: RecoverFencing was given a smaller token than nodes show; the greater counts", "atLeast", o.AtLeast, "shown", shown)
	}
	now, _ := c.micros() // it was right when the call began
	return fencing.InitFloor(o.AtLeast, block, shown, now)
}

// Check is the error of an act that cannot be carried out by this client.
func (c *Client) Check(atLeast uint64) error {
	if atLeast > fencing.MaxToken-2*block {
		return engine.WrongArgument("atLeast is %d, which leaves no tokens below 2^53", atLeast)
	}
	_, err := c.micros()
	return err
}

// Vote gives nodes their vote: by the order where too few remember, else with what those do. It waits for
// the longest TTL, and returns when a quorum of each list has its vote. A node that is sick or slow, or has
// just restarted, delays it to 1.25 of that, and is named in the log.
//
// The operator's number holds for what had been forgotten when the act looked. A node that
// forgets later may have voted since, by another operator's call, for locks that the number
// does not cover. So it is used for the nonces that nodes had shown; all other nodes are left to those that have a vote by then.
func (v *View) Vote(ctx context.Context, order Order) error {
	c := v.client
	by := &operator{Order: order}
	if floor := strconv.FormatUint(fencing.InitFloor(order.AtLeast, block, 0, 0), 10); order.AtLeast > 0 {
		c.askAll(fencing.RaiseVerb, func(int) ([]string, bool) { return []string{floor}, true })
	}
	all := make([]recovery, len(c.cfg.Nodes))
	for node := range all {
		all[node].node = node
		if all[node].Rejoin = fencing.BeginRejoin(c.fleet, node); by.Alone && v.Nonces[node] != "" {
			all[node].Rejoin = fencing.BeginInit(c.fleet, node, c.fleet.At(order.Stage))
		}
	}
	answers := newBell()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	began, enough := c.cfg.Clock.Now(), clock.Never // when the nodes that have no vote are left to the others
	for {
		pause, voting := clock.Never, quorum.Set(0)
		for node := range all {
			r := &all[node]
			again := c.advance(r, answers.ring, by)
			switch nonce := r.Nonce(); {
			case r.Finished():
				c.voting(node, r.connection)
				voting.Add(node)
				continue
			case nonce == "":
			case by.Alone && c.fleet.IsOther(nonce):
				return c.changing(fencing.NonceFleet(nonce), quorum.Only(node))
			case nonce != v.Nonces[node] && by.Alone && r.IsGiven():
				*r = recovery{Treatment: fencing.Treatment{Rejoin: fencing.BeginRejoin(c.fleet, node)}, node: node}
			}
			if c.cfg.IsUp(node) {
				pause = min(pause, again, fencing.MaxPause)
			}
		}
		now := c.cfg.Clock.Now()
		if enough == clock.Never && c.fleet.IsQuorum(voting) {
			enough = max(began+c.fleet.Quarantine*5/4, now+fencing.MinPause)
		}
		switch {
		case enough != clock.Never && (pause == clock.Never || now >= enough):
			if missed := c.fleet.Nodes() &^ voting; missed != 0 {
				c.log(slog.LevelWarn, "redlock: nodes have no fenced vote yet, and clients bring them back", "nodes", c.names(missed), "error", c.Votes())
			}
			return nil
		case engine.IsClosed(c.cfg.Ending):
			return engine.ErrClosed
		}
		timer.Reset(min(max(pause, time.Millisecond), fencing.MinPause))
		select {
		case <-timer.C:
		case <-answers:
		case <-ctx.Done():
			return texts.NotReady(ctx, c.Votes())
		case <-c.cfg.Ending:
			return engine.ErrClosed
		}
	}
}
