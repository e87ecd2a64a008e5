package client

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/quorum"
)

// reportAttempt reports the end of an attempt, with its error or nil. ctx is its caller's, or nil.
func (g *site) reportAttempt(ctx context.Context, op *engine.Op, key []byte, err error) {
	if f := g.cfg.OnAttempt; f != nil {
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

// reports is the attempts of one call; nil without a hook. It is used again, so reporting allocates nothing. It is
// not on the stacks of callers: they would hold it there while they wait.
type reports struct{ of []report }

var unusedReports = sync.Pool{New: func() any { return new(reports) }}

// with adds an attempt to a call's.
func (r *reports) with(a report) *reports {
	if r == nil {
		r = unusedReports.Get().(*reports)
	}
	r.of = append(r.of, a)
	return r
}

// report calls the hook for each attempt of a caller, and takes r back. If the caller stands in lines, others have its
// turns meanwhile: a hook may block. h is the result of the last attempt: if the hook panics the caller gets no handle,
// and the lock is released.
func (g *site) report(ctx context.Context, h Handle, r *reports) {
	if r == nil {
		return
	}
	returned := false
	defer func() {
		if !returned {
			h.drop()
		}
	}()
	hook(ctx, func(ctx context.Context) {
		for i := range r.of {
			a := &r.of[i]
			g.cfg.OnAttempt(ctx, engine.Acquire, a.key, a.took, a.tally, asked(ctx, a.err))
		}
	})
	returned = true
	clear(r.of)
	r.of = r.of[:0]
	unusedReports.Put(r)
}

// reportUnsent counts and reports an attempt that no node was asked for: an extend of a lock expired or released, or
// an acquire while others wait for the key.
func (g *site) reportUnsent(ctx context.Context, kind engine.Kind, key string, err error) {
	g.engine.Note(kind, err)
	if f := g.cfg.OnAttempt; f != nil {
		hook(ctx, func(ctx context.Context) { f(ctx, kind, key, 0, quorum.Tally{}, err) })
	}
}

// reportLost reports that a lock is gone, unless it has done so before.
func (h Handle) reportLost(key string, err error) {
	if f := h.group.cfg.OnLockLost; f != nil && h.hold.ReportLoss() {
		f(key, err)
	}
}
