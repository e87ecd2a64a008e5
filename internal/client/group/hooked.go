package group

import (
	"context"
	"sync"

	"github.com/redlock-go/redlock/internal/client/engine"
)

// Counted is the context of a call of Do as it acquires its lock: Shutdown waits for that call.
type Counted struct {
	context.Context
	Count, Uncount func()
}

// hooked is the locks whose callers are in a hook, and have not got them yet. A hook may call Shutdown or Close. So
// the end of a client does not wait for it, and gives its lock back.
type hooked struct {
	mu   sync.Mutex // held while locks are given back: no user code runs then
	held map[Handle]struct{}
}

// HasHooks reports whether calls that acquire call hooks.
func (g *Group) HasHooks() bool { return g.cfg.OnAttempt != nil || g.cfg.OnAcquire != nil }

// hook calls a hook of a caller that has h, or nothing. Meanwhile Shutdown does not wait for the caller. It counts
// again before it looks whether the client ends: so Shutdown waits for it, or its lock is given back.
func (g *Group) hook(ctx context.Context, h Handle, f func(ctx context.Context)) {
	if !h.hold.IsZero() {
		g.hooked.enter(h)
		defer g.hooked.leave(h)
	}
	if c, ok := ctx.(*Counted); ok {
		c.Uncount()
		defer c.Count()
		ctx = c.Context
	}
	f(ctx)
}

func (k *hooked) enter(h Handle) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held == nil {
		k.held = make(map[Handle]struct{})
	}
	k.held[h] = struct{}{}
}

func (k *hooked) leave(h Handle) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.held, h)
	if engine.IsClosed(h.group.ending) {
		h.ReleaseAsync()
	}
}

// giveBack releases the locks of callers in hooks: the engine is about to refuse releases.
func (k *hooked) giveBack() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for h := range k.held {
		h.ReleaseAsync()
	}
}

// afterHooks is the result of a call whose hooks have returned: its lock may have been given back meanwhile.
func (g *Group) afterHooks(h Handle, err error) (Handle, error) {
	if err == nil && g.HasHooks() && engine.IsClosed(g.ending) {
		if _, ok := h.hold.State(); !ok {
			return Handle{}, engine.ErrClosed
		}
	}
	return h, err
}
