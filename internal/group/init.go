package group

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/fencing"
	"github.com/redlock-go/redlock/internal/holding"
)

// operator is one call of InitFencing.
type operator struct {
	atLeast uint64
	alone   bool // too few nodes have a vote for the others to know all tokens
	warned  bool
}

// floor is that of a node which gets its vote now, behind its quarantine. A clock is trusted, and
// nodes without a vote are, only where those that have one are too few.
func (o *operator) floor(f *fence) uint64 {
	if !o.alone {
		return fencing.InitFloor(o.atLeast, holding.MaxPasses, 0, 0)
	}
	var shown uint64
	for node := range f.fleet.Nodes {
		if a, err := f.ask(node, fencing.ShowVerb); err == nil && a.Code == fencing.OK {
			shown = max(shown, a.Token)
		}
	}
	if log := f.group.cfg.Logger; log != nil && shown > o.atLeast && !o.warned {
		o.warned = true
		log.Warn("redlock: InitFencing was given a smaller token than nodes show; the greater counts", "atLeast", o.atLeast, "shown", shown)
	}
	now, _ := f.micros() // it was right when the call began
	return fencing.InitFloor(o.atLeast, holding.MaxPasses, shown, now)
}

// InitFencing gives nodes without a vote one, though too many have forgotten for them to be
// brought back by the others. It waits for the longest TTL. atLeast is the largest token
// that the resources have seen; all that are given from then on are larger.
func (g *Group) InitFencing(ctx context.Context, atLeast uint64) error {
	f := &g.fence
	ctx = orBackground(ctx)
	switch {
	case !f.on:
		return fmt.Errorf("%w: InitFencing needs Config.Fenced", ErrConfig)
	case atLeast > fencing.MaxToken-2*holding.MaxPasses:
		return engine.WrongArgument("atLeast is %d, which leaves no tokens below 2^53", atLeast)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := f.micros(); err != nil {
		return err
	}
	by := operator{atLeast: atLeast}
	active, forgotten, cases := 0, uint64(0), make([]fencing.Treatment, f.fleet.Nodes)
	for node := range cases {
		a, err := f.ask(node, fencing.RaiseVerb, strconv.FormatUint(by.floor(f), 10))
		switch {
		case err == nil && a.Code == fencing.OK:
			active++
		case err == nil && a.Code == fencing.Foreign:
			return f.misfit()
		case err == nil && a.Code == fencing.Amnesia:
			forgotten |= bit(node)
		}
	}
	by.alone = active < f.fleet.Nodes-f.fleet.Quorum+1
	for node := range cases {
		if cases[node].Rejoin = fencing.BeginRejoin(f.fleet, node); by.alone && forgotten&bit(node) != 0 {
			cases[node].Rejoin = fencing.BeginInit(f.fleet, node)
		}
	}
	return f.initialize(ctx, cases, &by)
}

// initialize brings all nodes back, until enough have their vote.
//
// The operator's number holds for what had been forgotten when the call began. A node that
// forgets later may have voted since, by another operator's call, for locks that the number
// does not cover. So the nonces that nodes have in the first round are those that it is
// used for; all other nodes are left to those that have a vote by then.
func (f *fence) initialize(ctx context.Context, cases []fencing.Treatment, by *operator) error {
	enough := max(f.fleet.Quorum, f.fleet.Nodes-f.fleet.Quorum+1)
	nonces := make([]string, len(cases))
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for first := true; ; first = false {
		pause, voting, known := never, 0, 0
		for node := range cases {
			again, finished := f.treat(&cases[node], node, by)
			switch nonce := cases[node].Nonce(); {
			case finished:
				f.voting(node)
				voting++
				continue
			case nonce == "":
			case first:
				nonces[node] = nonce
				known++
			case nonce != nonces[node] && by.alone:
				cases[node], nonces[node] = fencing.Treatment{Rejoin: fencing.BeginRejoin(f.fleet, node)}, nonce
			}
			if f.group.up(node) {
				pause = min(pause, again)
			}
		}
		switch {
		case pause == never && voting >= enough:
			return nil // nodes that are down are brought back by the others
		case f.group.isEnding():
			return engine.ErrClosed
		case first && by.alone && voting+known < enough:
			return f.voteless()
		}
		timer.Reset(min(max(pause, time.Millisecond), fencing.MinPause))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return &notReady{endOf(ctx), f.voteless()}
		case <-f.group.ending:
			return engine.ErrClosed
		}
	}
}
