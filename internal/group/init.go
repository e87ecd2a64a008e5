package group

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/fencing"
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
		return fencing.InitFloor(o.atLeast, maxPasses, 0, 0)
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
	return fencing.InitFloor(o.atLeast, maxPasses, shown, now)
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
	case atLeast > fencing.MaxToken-2*maxPasses:
		return engine.WrongArgument("atLeast is %d, which leaves no tokens below 2^53", atLeast)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := f.micros(); err != nil {
		return err
	}
	by := operator{atLeast: atLeast}
	active, cases := 0, make([]fencing.Treatment, f.fleet.Nodes)
	for node := range cases {
		a, err := f.ask(node, fencing.RaiseVerb, strconv.FormatUint(by.floor(f), 10))
		switch {
		case err == nil && a.Code == fencing.OK:
			active++
		case err == nil && a.Code == fencing.Foreign:
			return f.misfit()
		}
	}
	by.alone = active < f.fleet.Nodes-f.fleet.Quorum+1
	for node := range cases {
		if cases[node].Rejoin = fencing.BeginRejoin(f.fleet, node); by.alone {
			cases[node].Rejoin = fencing.BeginInit(f.fleet, node)
		}
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		pause, voting := time.Duration(never), 0
		for node := range cases {
			again, finished := f.treat(&cases[node], node, &by)
			switch {
			case finished:
				f.voting(node)
				voting++
			case g.up(node):
				pause = min(pause, again)
			}
		}
		if pause == never && voting >= max(f.fleet.Quorum, f.fleet.Nodes-f.fleet.Quorum+1) {
			return nil // nodes that are down are brought back by the others
		}
		timer.Reset(min(max(pause, time.Millisecond), fencing.MinPause))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return &notReady{endOf(ctx), f.voteless()}
		case <-g.ending:
			return engine.ErrClosed
		}
	}
}
