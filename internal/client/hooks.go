package client

import (
	"context"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/group"
)

// No hook runs on the way of a call. The goroutine of callbacks calls each one later, with what was so when the call ended.

var acquisitions engine.Events[group.Acquisition]

// noCaller is the context of an operation without a waiting caller.
var noCaller context.Context

// reportAttempt reports the end of an attempt, with its error or nil. ctx is its caller's, or nil.
func (g *site) reportAttempt(ctx context.Context, op *engine.Op, key []byte, err error) {
	if g.Config.OnAttempt != nil { // else neither the clock is read, nor the text of the key allocated
		g.report(engine.Attempt{Ctx: ctx, Kind: op.Kind, Key: string(key), Took: op.Took(g.clock.Now()), Votes: op.Tally, Err: err})
	}
}

func (g *site) report(a engine.Attempt) {
	if f := g.Config.OnAttempt; f != nil {
		a.Ended = time.Now()
		g.Engine.Inform(engine.Attempts.For(f, a))
	}
}

// reportEnd counts and reports an operation on a lock, decided by one of its calls, and returns its error as the API shows it.
// Only its caller waits for its context here.
func (g *site) reportEnd(ctx context.Context, c, by *engine.Call, err error) error {
	c.Note(err)
	err = by.Explain(engine.Asked(ctx, err))
	g.reportAttempt(ctx, &by.Op, c.Key, err)
	return err
}

// reportUnsent counts and reports an attempt of which no node was asked: an extend of a lock expired or released, or
// an acquire while others wait for the key.
func (g *site) reportUnsent(ctx context.Context, kind engine.Kind, key string, err error) {
	g.Engine.Note(kind, err)
	g.report(engine.Attempt{Ctx: ctx, Kind: kind, Key: key, Err: err})
}

// reportLost reports that a lock is gone, unless it has done so before.
func (h Handle) reportLost(key string, err error) {
	if h.hold.ReportLoss() {
		h.site().reportLoss(key, err)
	}
}

// reportLoss reports that a lock was lost. That is always heard.
func (g *site) reportLoss(key string, err error) {
	if f := g.Config.OnLockLost; f != nil {
		g.Engine.Inform(engine.News(func() { f(key, err) }))
	}
}
