package group

import (
	"context"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/token"
)

// TryAcquire makes one attempt. It does not overtake the waiters of this process.
func (g *Group) TryAcquire(ctx context.Context, key string, ttl time.Duration) (Handle, error) {
	ctx = orBackground(ctx)
	w, err := g.acquisition(ctx, key, ttl)
	if err != nil {
		return Handle{}, err
	}
	defer g.engine.Free(w)
	if g.lines.someWait(key) {
		g.reportUnsent(ctx, engine.Acquire, key, engine.ErrTaken)
		return Handle{}, engine.ErrTaken
	}
	return g.attempt(ctx, w, key)
}

// Acquire makes attempts, with pauses between them, until one wins, one fails
// for a reason that stays, they are used up, or ctx ends.
func (g *Group) Acquire(ctx context.Context, key string, ttl time.Duration) (Handle, error) {
	ctx = orBackground(ctx)
	own := g.wait(key)
	if ctx.Err() != nil {
		return Handle{}, g.cutOff(ctx, &own) // it is not reported: there was no attempt
	}
	w, err := g.acquisition(ctx, key, ttl)
	if err != nil {
		return Handle{}, err
	}
	defer g.engine.Free(w)
	h, err := g.inLine(ctx, &own, w)
	return g.acquired(ctx, &own, h, err)
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

// attempt is one attempt, with a token of its own.
func (g *Group) attempt(ctx context.Context, w *engine.Call, key string) (h Handle, err error) {
	for range maxAgain {
		if err := g.newToken(&w.Token); err != nil {
			return Handle{}, err
		}
		if g.fence.on {
			if w.Block, err = g.fence.propose(&w.Proposal); err != nil {
				return Handle{}, err
			}
		}
		h, err = g.attempted(ctx, w, key, g.engine.Do(ctx, w))
		again := false
		if err != nil {
			again, err = g.fence.learn(&w.Op, &w.Proposal, err)
		}
		if !again {
			break
		}
	}
	return h, err
}

// attempted is the end of an attempt whose call has ended with err.
func (g *Group) attempted(ctx context.Context, w *engine.Call, key string, err error) (Handle, error) {
	if err == nil {
		err = g.errorOf(&w.Op)
	}
	if err == nil && g.clock.Now() >= w.Until { // this goroutine may have waited long to run again
		g.engine.Late(&w.Op)
		err = engine.ErrExpired
	}
	if g.cfg.OnAttempt != nil {
		g.orAbandon(err, func() { g.reportAttempt(ctx, &w.Op, key, err) }, &w.Op)
	}
	if err != nil {
		return Handle{}, err
	}
	h := g.handle(state{key: key, token: w.Token, until: w.Until, ttl: w.TTL}, w.Absent)
	h.fence = g.fence.grant(w.Block.First)
	return h, nil
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
