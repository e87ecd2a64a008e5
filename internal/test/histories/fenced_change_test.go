package histories

import (
	"context"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
)

type changePlan int

const (
	toItsEnd changePlan = iota
	backBeforeTheCall
	backAfterIt
	neverFinished
	unchanged
)

// steps is their number: for a client of the way back this change would be under way.
func (h *fencedHistory) steps() int {
	switch h.plan {
	case unchanged:
		return 1
	case backAfterIt:
		return 4
	}
	return 3
}

// direct takes the clients through the change: to its end; taken back and begun again; to its end
// and back; never finished.
func (h *fencedHistory) direct() {
	rng := newRandom(h.seed, 1000)
	pause := func() { time.Sleep(time.Second + rng.N(2*time.Second)) }
	call := func(step int) {
		for time.Now().Before(h.end) {
			var both sync.WaitGroup
			returned := false
			for n := range 1 + rng.IntN(2) {
				at := rng.IntN(len(h.machines))
				wait := rng.N(8 * time.Second)
				both.Go(func() {
					c := h.connect(step, at)
					defer func() { _ = c.Close() }()
					ctx, cancel := context.WithTimeout(h.T.Context(), wait)
					defer cancel()
					if h.grouped {
						_ = c.InitFencing(ctx) // the new groups
					}
					if err := c.ChangeFencing(ctx); err == nil && n == 0 {
						returned = true
					}
				})
			}
			both.Wait()
			if returned {
				h.count("calls")
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	pause()
	h.step.Store(1)
	pause()
	if h.plan == backBeforeTheCall {
		h.step.Store(0)
		pause()
		h.step.Store(1)
		pause()
	}
	if h.plan == neverFinished {
		return
	}
	if h.grouped {
		call(1) // new groups have no vote before
		pause()
	}
	call(1)
	h.step.Store(2)
	if h.plan == backAfterIt && time.Now().Before(h.end) {
		pause()
		h.step.Store(3)
		call(3)
		if h.grouped {
			call(3) // if a group had forgotten all
		}
		h.step.Store(0)
	}
}

// meddle is operators who call too early, or too late, and some with a differently configured
// client. Where the lists have no node in common, a client of one of them alone takes nodes for new
// ones, as fencing's MODEL.md says.
func (h *fencedHistory) meddle() {
	rng := newRandom(h.seed, 3000)
	for time.Now().Before(h.end) {
		time.Sleep(rng.N(2 * time.Second))
		at, step := rng.IntN(len(h.machines)), rng.IntN(h.steps())
		if h.apart {
			step = 1
		}
		cfg := h.config(step, h.clocks[at])
		if rng.IntN(4) == 0 {
			cfg.MaxTTL *= 2
		}
		c, err := h.machines[at].Client(cfg)
		require.NoError(h.T, err)
		ctx, cancel := context.WithTimeout(h.T.Context(), rng.N(6*time.Second))
		switch rng.IntN(3) {
		case 0:
			err = c.InitFencing(ctx)
		case 1:
			h.mu.Lock()
			may, atLeast := time.Since(h.lost) > maxTTL+maxTTL/50, max(h.seen, 1)
			h.read = time.Now()
			h.mu.Unlock()
			if err = ctx.Err(); may {
				err = c.RecoverFencing(ctx, atLeast)
			}
		case 2:
			if err = ctx.Err(); h.hasty || step%2 == 0 {
				err = c.ChangeFencing(ctx)
			}
		}
		cancel()
		_ = c.Close()
		if err != nil {
			h.count("refused")
		} else {
			h.count("done at a wrong time")
		}
	}
}

// change is the nodes before and after a change; none is without an after.
func (h *fencedHistory) change(rng random) (nodes int, old, next layout) {
	h.plan = min(changePlan(rng.IntN(8)), unchanged)
	if h.plan == unchanged {
		all := []int{0, 1, 2, 3, 4}[:3+2*rng.IntN(2)]
		return len(all), layout{all}, nil
	}
	h.hasty, h.grouped = rng.IntN(4) == 0, rng.IntN(2) == 0
	change := [][2]layout{
		{{{0, 1, 2}}, {{0, 1, 3}}}, {{{0, 1, 2}}, {{0, 1, 2, 3, 4}}}, {{{0, 1, 2}}, {{3, 4, 5}}}, {{{0, 1, 2, 3, 4}}, {{3, 4, 5}}},
	}
	if nodes = 6; h.grouped {
		nodes = 9
		change = [][2]layout{
			{{{0, 1, 2}}, {{0, 1, 2}, {3, 4, 5}}}, {{{0, 1, 2}, {3, 4, 5}}, {{0, 1, 2}, {3, 4, 5}, {6, 7, 8}}},
			{{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}}, {{0, 1, 2}}}, {{{0, 1, 2}, {3, 4, 5}}, {{0, 1, 8}, {3, 4, 5}, {6}}},
		}
	}
	of := change[rng.IntN(4)]
	return nodes, of[0], of[1]
}
