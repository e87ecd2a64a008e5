package group

import (
	"context"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/holding"
	"github.com/redlock-go/redlock/internal/fencing"
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
	return g.attempt(ctx, c, key, false, nil)
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
// number of a fencing token, it is made again at once. If it was sent along with a release,
// only its end is awaited. With later no hook runs, but what it is to be told is added there:
// others wait in line for the end of this attempt.
func (g *Group) attempt(ctx context.Context, c *engine.Call, key string, sent bool, later *reports) (h Handle, err error) {
	for again := true; again; sent = false {
		if sent {
			err = c.Ended(ctx)
		} else if err = g.renew(&c.Op, &c.Token, &c.Proposal); err == nil {
			err = g.engine.Do(ctx, c)
		} else {
			return Handle{}, err
		}
		if err == nil {
			err = c.Err
		}
		if err == nil && g.clock.Current() >= c.Until { // this goroutine may have waited long to run again
			g.engine.Late(&c.Op)
			err = engine.ErrExpired
		}
		if err == nil {
			h = Handle{g, holding.Begin(holding.State{Key: key, Token: c.Token, Until: c.Until, TTL: c.TTL}, c.Absent, c.Block.First)}
			g.fence.granted(&c.Op)
		}
		if again, err = g.fence.again(&c.Op, &c.Proposal, err); !again || g.cfg.OnAttempt != nil {
			err = g.shown(&c.Op, err)
		}
		if g.cfg.OnAttempt != nil {
			r := report{key, c.Took(g.clock.Now()), c.Tally, err}
			if later != nil {
				*later = append(*later, r)
			} else {
				g.report(ctx, h, reports{r})
			}
		}
	}
	return h, err
}

// renew gives an acquire what no other attempt had. Rand and FenceClock are user code.
func (g *Group) renew(op *engine.Op, t *token.Token, p *fencing.Proposal) error {
	if err := g.newToken(t); err != nil {
		return err
	}
	return g.fence.propose(&op.Block, p)
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
func (g *Group) errorOf(op *engine.Op) error { return g.shown(op, op.Err) }

// shown is errorOf with err in place of the operation's own.
func (g *Group) shown(op *engine.Op, err error) error {
	if err != engine.ErrNoQuorum {
		return err
	}
	return g.cfg.QuorumError(g, op)
}
