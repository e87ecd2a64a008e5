package client

import (
	"cmp"
	"context"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/internal/rules/fencing"
)

// A lock is left by one of three doors: Release, whose caller waits for the nodes; ReleaseAsync, and the end of Do, which
// do not wait; and giveWay. A table in holding/DESIGN.md says what each of them ends.

// Release has the nodes delete the key where it still has the lock's token.
func (h Handle) Release(ctx context.Context) error {
	ctx = orBackground(ctx)
	if h.site() != nil && h.site().plain && !h.site().isAwaited(h.key) {
		if done, err := h.releasePlainly(ctx); done {
			return err
		}
	}
	return h.release(ctx, engine.Awaited, stay{})
}

// ReleaseAsync is Release without waiting for the nodes. The handle is dead at once.
func (h Handle) ReleaseAsync() { _ = h.release(context.Background(), engine.Soon, stay{}) }

// release passes the lock on to the first caller in line. Else the nodes delete it, and the acquire of that caller goes
// along. Validity ends before the nodes are asked: they may apply the release even if its caller gets an error. The
// lease is free for another lock once they certainly have; at once, if the release is not awaited. Its error is then
// ErrNotHeld, or ErrClosed: no node learns of it.
//
// A lock may be to stay for the rest of a term:
//
//	is to stay   others may have it   a caller in line          no caller in line
//	no           -                    has it                    the key is deleted
//	yes          yes                  has it, with its stay     the key stays
//	yes          no                   waits                     the key stays
//
// No key stays for longer than it would have without a release, and none where the lock is lost.
func (h Handle) release(ctx context.Context, how engine.Manner, stay stay) error {
	s, ok := h.hold.State()
	if !ok {
		return engine.ErrNotHeld
	}
	g := h.site()
	done, ended := ctx.Done(), ctx.Err() // ctx is user code, and comes before anything ends
	if ended != nil {
		how = engine.Left
	}
	if s.Kept {
		g.keeper.Stop(h.hold)
	}
	if s.Stays != 0 {
		if left := s.Stays.Sub(g.clock.Now()); left > stay.left {
			stay.left, stay.passes = left, true
		}
	}
	stays := stay.left > 0 && s.Until > 0
	if stays && stay.passes { // it passes on with the lock
		h.hold.Stay(g.clock.Now().Add(stay.left))
	}
	passes := !stays || stay.passes
	if passes && g.lines.Pass(h.hold, &s) {
		return nil
	}
	var next fresh // of the first in line
	if !stays && passes && g.isAwaited(s.Key) && ended == nil && s.Several() == nil && !s.Shared && !engine.IsClosed(g.ending) {
		next, _ = g.fresh(new(fencing.Proposal), false)
	}
	c, err := h.releasing(&s, how, stay.left)
	if err != nil {
		return err
	}
	defer c.Free()
	c.Watch(engine.Limit{Done: done})
	var along *engine.Call
	if next != (fresh{}) {
		along = g.lines.Along(&s, next.token, next.block)
	}
	by, err := c.Release(how, along)
	if along != nil && err == engine.ErrBusy { // there is no room for both
		along = nil
		by, err = c.Release(how, nil)
	}
	ends := c.Began()
	g.eachKey(s.Key, s.More, func(g *site, key string) { g.lines.Had(key, s.Turn, ends, how.IsAwaited()) })
	if along == nil { // else the line knows. The context comes after: it may block
		g.freed(&s)
	}
	if !how.IsAwaited() {
		return err
	}
	return h.released(ctx, c, by, cmp.Or(err, ended))
}

// releasing ends the validity of a lock, and returns the calls to release it; its key stays for so long. ErrNotHeld:
// another caller has released it since, or passed it on.
func (h Handle) releasing(s *holding.State, how engine.Manner, stays time.Duration) (*engine.Call, error) {
	g := h.site()
	c, err := s.Calls(g.Engine, engine.Release, 0, g.Config.Tail)
	if err != nil {
		return nil, err
	}
	absent, ok := g.keeper.Releasing(h.hold)
	if !ok || !how.IsAwaited() && !h.hold.End() {
		c.Free()
		return nil, engine.ErrNotHeld
	}
	c.About(s.Token, fencing.Block{}, absent)
	if stays > 0 && s.Until > 0 {
		c.Each(func(c *engine.Call) { c.Stay = (stays + time.Millisecond - 1).Truncate(time.Millisecond) })
	}
	return c, nil
}

// released ends the hold of a released lock, and reports the result.
func (h Handle) released(ctx context.Context, c, by *engine.Call, err error) error {
	g := h.site()
	if c.IsUnsent() {
		g.keeper.Unreleased(h.hold) // no node has heard of it
	}
	// The loss is noted before the life ends: after that the lease may be another lock's.
	lost := err == engine.ErrNotHeld && h.hold.ReportLoss()
	if err == nil || err == engine.ErrNotHeld {
		h.hold.End()
	}
	err = g.reportEnd(ctx, c, by, err)
	if lost {
		g.reportLoss(h.key, err)
	}
	return err
}

// giveWay has the nodes delete the key of a collected lock right before the next operation of its caller, which asks for
// all keys of the set. The line does not hear of it: no other caller of the process has the key before. A key of a contest
// stays, and the set waits for it.
func (h Handle) giveWay() {
	g := h.site()
	g.Config.Underway.Enter()
	defer g.Config.Underway.Leave()
	s, ok := h.hold.State()
	if !ok {
		return
	}
	g.keeper.Stop(h.hold)
	if c, err := h.releasing(&s, engine.Ahead, s.Stays.Sub(g.clock.Now())); err == nil {
		_, _ = c.Release(engine.Ahead, nil)
		c.Free()
	}
}

// isAwaited reports whether callers of this process wait for a key.
func (g *site) isAwaited(key string) bool {
	awaited, _ := g.lines.Awaits(key)
	return awaited
}
