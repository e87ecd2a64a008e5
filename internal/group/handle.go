package group

import (
	"context"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/renewal"
	"github.com/redlock-go/redlock/internal/token"
	"github.com/redlock-go/redlock/quorum"
)

// Handle is a handle on a lock that was acquired: the lease that keeps its state,
// and the life of that lease. It is a small value that may be copied. The zero
// Handle holds nothing, and neither does one whose lock was released.
type Handle struct {
	group *Group
	lease *lease
	life  uint64
	fence uint64    // its fencing token, or 0
	key   string    // the first of several
	keys  *[]string // all, if there are several
}

// Fence is the fencing token, or 0 where the client is not fenced.
func (h Handle) Fence() uint64 { return h.fence }

func (h Handle) state() (s state, ok bool) {
	if h.lease == nil {
		return
	}
	return h.lease.get(h.life)
}

// Key is the locked key, the first of several. It stays after the lock.
func (h Handle) Key() string { return h.key }

// Keys is all locked keys. They stay after the lock.
func (h Handle) Keys() []string {
	switch {
	case h.lease == nil:
		return nil
	case h.keys != nil:
		return slices.Clone(*h.keys)
	}
	return []string{h.key}
}

// Token is the value at the keys, the proof of who holds the lock, or "". A lock whose
// token was told is not passed on inside the process: another may have the token.
func (h Handle) Token() string {
	if h.lease != nil {
		h.lease.tell(h.life)
	}
	return h.Value()
}

// Value is Token for callers that do not tell it.
func (h Handle) Value() string {
	if s, ok := h.state(); ok {
		return s.token.String() + h.group.tailOf(&s)
	}
	return ""
}

// Remaining is the validity that is left, or 0. A machine that was suspended is noticed.
func (h Handle) Remaining() time.Duration {
	if s, ok := h.state(); ok {
		return max(0, s.until-h.group.clock.Current())
	}
	return 0
}

// Extend asks the nodes to count ttl from now, where they still hold the lock. A
// wrong ttl is reported before the end of the context, and that before a lock that
// was released or has expired.
func (h Handle) Extend(ctx context.Context, ttl time.Duration) error {
	s, ok := h.state()
	if !ok {
		return engine.ErrNotHeld
	}
	g := h.group
	c, err := g.calls(engine.Extend, &s, ttl)
	if err != nil {
		return err
	}
	defer c.free()
	ctx = orBackground(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	c.prepare(ctx, s.token, 0)
	x, err := h.beginExtend(c.first().TTL)
	if err != nil {
		g.reportUnsent(ctx, engine.Extend, s.key, err)
		if err == engine.ErrExpired {
			h.reportLost(s.key, err)
		}
		return err
	}
	c.each(func(one *engine.Call) { one.Before, one.Repairer, one.Life = x.Before(), h.lease, h.life })
	g.keeper.review(h, false)
	err = h.extend(ctx, &c, x, &s)
	g.keeper.review(h, err == nil)
	c.report(ctx, err)
	if err == engine.ErrNotHeld || err == engine.ErrExpired {
		h.reportLost(s.key, err)
	}
	return err
}

// beginExtend has the lease know of an extension before a node can: from here on
// validity counts on the earlier of both ends. User code has run since the lease was
// looked at, so it may have been released.
func (h Handle) beginExtend(ttl time.Duration) (*renewal.Extension, error) {
	now := h.group.clock.Current()
	switch s, ok := h.state(); {
	case !ok, s.released:
		return nil, engine.ErrNotHeld
	case now >= s.until:
		return nil, engine.ErrExpired
	}
	x := h.lease.extending(h.life, ttl, quorum.Until(now, ttl))
	if x == nil {
		return nil, engine.ErrNotHeld
	}
	return x, nil
}

// extend sends an extension. The lease learns the result on every path, also when a
// context panics; otherwise the extension would count as under way for ever. So does the
// line, since validity may end earlier now.
func (h Handle) extend(ctx context.Context, c *calls, x *renewal.Extension, s *state) (err error) {
	result := renewal.Unknown
	defer func() {
		h.lease.extended(h.life, x, result)
		h.group.lines.shortened(h, s)
	}()
	unsent, err := c.do(ctx)
	result = resultOf(unsent, err)
	return err
}

// resultOf is the result of an extension that ended with err.
func resultOf(unsent bool, err error) renewal.Result {
	switch {
	case unsent:
		return renewal.Unsent
	case err == nil:
		return renewal.Won
	case err == engine.ErrNotHeld:
		return renewal.Lost
	}
	return renewal.Unknown
}

// Release has the nodes delete the key where it still has the lock's token. Validity
// ends before they are asked: they may apply the release even if its caller gets an error.
// The lease is free for another lock once it is certain that they have.
func (h Handle) Release(ctx context.Context) error {
	s, ok := h.state()
	if !ok {
		return engine.ErrNotHeld
	}
	g := h.group
	ctx = orBackground(ctx)
	if s.kept != nil && !h.hasRoom(ctx, &s) { // before it is kept alive no more
		return engine.ErrBusy
	}
	h.stopKeeping(&s)
	if g.lines.pass(h, &s) {
		return nil
	}
	if s.kept == nil && !h.hasRoom(ctx, &s) {
		return engine.ErrBusy
	}
	c, err := g.calls(engine.Release, &s, 0)
	if err != nil {
		return err
	}
	defer c.free()
	ended := ctx.Err()
	var along fresh // none
	if c.one != nil && ended == nil {
		along = g.lines.freshAlong(s.key)
	}
	absent, ok := h.releasing()
	if !ok { // another caller has released it since, or has passed it on
		return engine.ErrNotHeld
	}
	c.prepare(ctx, s.token, absent)
	unsent, err := h.release(ctx, &c, ended != nil, &s, along)
	if unsent {
		h.lease.unreleased(h.life) // no node has heard of it
	}
	if err == nil {
		err = ended
	}
	// The loss is looked up before the life ends: after that the lease may already
	// be another lock's.
	lost := err == engine.ErrNotHeld && h.lease.reportLoss(h.life)
	if err == nil || err == engine.ErrNotHeld {
		h.end()
	}
	c.report(ctx, err)
	if f := g.cfg.OnLockLost; f != nil && lost {
		f(s.key, err)
	}
	return err
}

// hasRoom reports whether the release of a lock may be queued. If not, that is an attempt
// which has ended with ErrBusy, and nothing of the lock has changed.
func (h Handle) hasRoom(ctx context.Context, s *state) bool {
	keys := 1
	if s.more != nil && s.more.keys != nil {
		keys = len(s.more.keys)
	}
	if h.group.engine.HasRoom(keys) {
		return true
	}
	h.group.reportUnsent(ctx, engine.Release, s.key, engine.ErrBusy)
	return false
}

// release sends a release, or leaves it; with something fresh along, the acquire of the first that
// waits for the lock too, if there is room for both. The line learns of it on every path,
// and before a hook is called, which may block.
func (h Handle) release(ctx context.Context, c *calls, leaves bool, s *state, along fresh) (unsent bool, err error) {
	if along.token != (token.Token{}) {
		if next := h.group.lines.along(s.key, along); next != nil {
			if unsent, err = c.doWith(ctx, next); err != engine.ErrBusy {
				return unsent, err
			}
		}
	}
	defer h.group.lines.freed(s)
	if leaves {
		err = c.leave()
		return err != nil, err
	}
	return c.do(ctx)
}

// ReleaseAsync is Release without waiting for the nodes. The handle is dead at once.
func (h Handle) ReleaseAsync() {
	s, ok := h.state()
	if !ok {
		return
	}
	h.stopKeeping(&s)
	if h.group.lines.pass(h, &s) {
		return
	}
	defer h.group.lines.freed(&s)
	c, err := h.group.calls(engine.Release, &s, 0)
	if err != nil {
		return
	}
	defer c.free()
	absent, _ := h.releasing() // end says whether the lock was still there
	c.each(func(one *engine.Call) { one.Token, one.Absent = s.token, absent })
	if h.end() { // of several callers one sends it
		c.discard()
		h.group.engine.DriveSoon()
	}
}

// stopKeeping ends that a lock is kept alive which is about to be released: only then may
// it pass on.
func (h Handle) stopKeeping(s *state) {
	if s.kept != nil {
		h.group.keeper.stop(s.kept, h, engine.ErrStopped)
	}
}

// releasing ends validity, and with it that the lock is kept alive, before a release is
// sent. It returns the nodes that do not have the key. Not ok, there is none to send.
func (h Handle) releasing() (absent uint64, ok bool) {
	absent, kept, ok := h.lease.releasing(h.life)
	if kept != nil {
		h.group.keeper.stop(kept, h, engine.ErrStopped)
	}
	return absent, ok
}

// end gives the lease back for another lock. Of several callers one is told that it did.
func (h Handle) end() bool {
	if !h.lease.end(h.life) {
		return false
	}
	h.group.leases.Put(h.lease)
	return true
}

// leave sends the releases of a caller that does not wait for them, because its context has
// ended: all of them, or none.
func (c *calls) leave() error {
	if c.one != nil {
		return c.group.engine.Leave(c.one)
	}
	return c.group.engine.Leave(c.all...)
}

// discard is leave for a caller that does not look at the result, which is counted when the
// first key has one.
func (c *calls) discard() {
	if c.one != nil {
		c.group.engine.Discard(c.one)
		return
	}
	c.all[0].Part = false
	c.group.engine.Discard(c.all...)
}

// left is how long it is until an instant of the group's clock, or 0.
func (g *Group) left(until time.Duration) time.Duration { return max(0, until-g.clock.Now()) }

// orBackground is ctx, or one without an end for nil.
func orBackground(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}
