package group

import (
	"context"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/token"
)

// TryAcquire makes one attempt. It does not overtake the waiters of this process, unless they
// leave the lock free for others.
func (g *Group) TryAcquire(ctx context.Context, key string, ttl time.Duration) (Handle, error) {
	ctx = orBackground(ctx)
	c, err := g.acquisition(ctx, key, ttl)
	if err != nil {
		return Handle{}, err
	}
	defer g.engine.Free(c)
	if g.lines.isTaken(key) {
		g.reportUnsent(ctx, engine.Acquire, key, engine.ErrTaken)
		return Handle{}, engine.ErrTaken
	}
	return g.attempt(ctx, c, key, nil)
}

// Acquire makes attempts, in line with those who want the key too, until one wins, one fails
// for a reason that stays, they are used up, or ctx ends.
func (g *Group) Acquire(ctx context.Context, key string, ttl time.Duration) (Handle, error) {
	ctx = orBackground(ctx)
	w := g.wait(key)
	if ctx.Err() != nil {
		return Handle{}, g.cutOff(ctx, &w) // it is not reported: there was no attempt
	}
	c, err := g.acquisition(ctx, key, ttl)
	if err != nil {
		return Handle{}, err
	}
	defer g.engine.Free(c)
	h, err := g.inLine(ctx, &w, c)
	return g.acquired(ctx, &w, h, err)
}

// acquisition returns the call for the attempts of one caller, to be freed by it.
func (g *Group) acquisition(ctx context.Context, key string, ttl time.Duration) (*engine.Call, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w, err := g.engine.Call(engine.Acquire, key, ttl)
	if err == nil {
		w.Watch(ctx)
		w.Tail = g.cfg.Holder
	}
	return w, err
}

// attempt is one attempt, with a token of its own. Where nodes have refused nothing but the
// number of a fencing token, it is made again at once. With later no hook runs, but what it is
// to be told is added there: others wait in line for the end of this attempt.
func (g *Group) attempt(ctx context.Context, c *engine.Call, key string, later *reports) (h Handle, err error) {
	for range maxAgain {
		if err := g.newToken(&c.Token); err != nil {
			return Handle{}, err
		}
		if g.fence.on {
			if c.Block, err = g.fence.propose(&c.Proposal); err != nil {
				return Handle{}, err
			}
		}
		h, err = g.attempted(ctx, c, key, g.engine.Do(ctx, c), later)
		again := false
		if err != nil {
			again, err = g.fence.learn(&c.Op, &c.Proposal, err)
		}
		if !again {
			break
		}
	}
	return h, err
}

// attempted is the end of an attempt whose call has ended with err.
func (g *Group) attempted(ctx context.Context, c *engine.Call, key string, err error, later *reports) (h Handle, _ error) {
	if err == nil {
		err = g.errorOf(&c.Op)
	}
	if err == nil && g.clock.Now() >= c.Until { // this goroutine may have waited long to run again
		g.engine.Late(&c.Op)
		err = engine.ErrExpired
	}
	if err == nil {
		h = g.handle(state{key: key, token: c.Token, until: c.Until, ttl: c.TTL}, c.Absent)
		h.fence = g.fence.grant(c.Block.First)
	}
	if g.cfg.OnAttempt != nil {
		r := report{key, c.Took(g.clock.Now()), c.Tally, err}
		if later != nil {
			*later = append(*later, r)
		} else {
			g.report(ctx, h, reports{r})
		}
	}
	return h, err
}

// handle begins a lease.
func (g *Group) handle(s state, absent uint64) Handle {
	l, _ := g.leases.Get().(*lease)
	if l == nil {
		l = new(lease)
	}
	return Handle{g, l, l.begin(s, absent), 0}
}

// newToken makes t a new token.
func (g *Group) newToken(t *token.Token) error {
	if err := t.Fill(g.cfg.Rand); err != nil {
		return fmt.Errorf("redlock: %w", err)
	}
	return nil
}

// errorOf returns the error of a completed operation as the API shows it. Only
// one without a quorum has details, and allocates.
func (g *Group) errorOf(op *engine.Op) error {
	if op.Err != engine.ErrNoQuorum {
		return op.Err
	}
	return g.cfg.QuorumError(g, op)
}
