package client

import (
	"cmp"
	"context"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/quorum"
)

// reportAttempt reports the end of an attempt, with its error or nil. ctx is its caller's, or nil.
func (g *site) reportAttempt(ctx context.Context, op *engine.Op, key []byte, err error) {
	if f := g.Config.OnAttempt; f != nil {
		f(ctx, op.Kind, string(key), op.Took(g.clock.Now()), op.Tally, err)
	}
}

// reportEnd counts and reports an operation on a lock, decided by one of its calls, and returns its error as the API shows it.
func (g *site) reportEnd(ctx context.Context, c, by *engine.Call, err error) error {
	c.Note(err)
	err = by.Explain(asked(ctx, err))
	g.reportAttempt(ctx, &by.Op, c.Key, err)
	return err
}

// asked is err, or the error of ctx where its end has ended a call. Only its caller waits for it here: a context is
// user code, and may block.
func asked(ctx context.Context, err error) error {
	if err == context.Canceled {
		err = cmp.Or(ctx.Err(), err)
	}
	return err
}

// report is an ended attempt to acquire, for Hooks.Attempt.
type report struct {
	key   string
	took  time.Duration
	tally quorum.Tally
	err   error
}

// report calls the hook for each attempt of a caller. If it stands in lines, others have its turns meanwhile: a hook may
// block. h is the result of the last attempt.
func (w *want) report(ctx context.Context, h Handle) {
	if len(w.reports) == 0 {
		return
	}
	w.hook(h, func() {
		for i := range w.reports {
			a := &w.reports[i]
			w.Config.OnAttempt(ctx, engine.Acquire, a.key, a.took, a.tally, asked(ctx, a.err))
		}
	})
	clear(w.reports)
	w.reports = w.reports[:0]
}

// reportUnsent counts and reports an attempt that no node was asked for: an extend of a lock expired or released, or
// an acquire while others wait for the key.
func (g *site) reportUnsent(ctx context.Context, kind engine.Kind, key string, err error) {
	g.Engine.Note(kind, err)
	if f := g.Config.OnAttempt; f != nil {
		f(ctx, kind, key, 0, quorum.Tally{}, err)
	}
}

// reportLost reports that a lock is gone, unless it has done so before.
func (h Handle) reportLost(key string, err error) {
	if f := h.site().Config.OnLockLost; f != nil && h.hold.ReportLoss() {
		f(key, err)
	}
}
