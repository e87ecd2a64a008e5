package client

import (
	"context"
	"sync"

	"github.com/redlock-go/redlock/internal/base/gate"
	"github.com/redlock-go/redlock/internal/client/engine"
)

// counted is the context of a call of Do as it acquires its lock: Shutdown waits for that call.
type counted struct {
	context.Context
	By *gate.Gate
}

// hooked is the locks that their callers do not have yet: of callers with hooks to call, from the grant on until the call
// returns; and of the keys that a set has collected so far. A hook may block, and may call Shutdown or Close. So the end
// of a client does not wait for it, and gives its lock back.
type hooked struct {
	mu   sync.Mutex // held while locks are given back: no user code runs then
	held map[Handle]struct{}
}

// HasHooks reports whether calls that acquire call hooks.
func (g *site) HasHooks() bool { return g.cfg.OnAttempt != nil || g.cfg.OnAcquire != nil }

// hook calls a hook of a caller. Meanwhile Shutdown does not wait for the caller.
func hook(ctx context.Context, f func(ctx context.Context)) {
	if c, ok := ctx.(*counted); ok {
		c.By.Leave()
		defer c.By.Enter()
		ctx = c.Context
	}
	f(ctx)
}

// granted notes a lock whose caller may have hooks to call. The end of the client waits for its attempt.
func (h Handle) granted() {
	if !h.group.HasHooks() {
		return
	}
	h.group.hooked.add(h)
}

func (k *hooked) add(h Handle) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held == nil {
		k.held = make(map[Handle]struct{})
	}
	k.held[h] = struct{}{}
}

// drop releases a lock that its caller does not get.
func (h Handle) drop() {
	if h.group != nil {
		h.leaveHooks(true)
	}
}

// leaveHooks has the caller get its lock, or drops it. While the client ends it is dropped in any case, or was given
// back; the end waits for that.
func (h Handle) leaveHooks(drops bool) (dropped bool) {
	g := h.group
	g.cfg.Underway.Enter()
	defer g.cfg.Underway.Leave()
	g.hooked.remove(h)
	if drops || engine.IsClosed(g.ending) {
		h.ReleaseAsync()
		return true
	}
	return false
}

func (k *hooked) remove(h Handle) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.held, h)
}

// giveBack releases the locks of callers in hooks: the engines are about to refuse releases. All groups do so before one
// of them ends, since a lock may have keys in several, and once no acquire of theirs is under way.
func (g *site) giveBack() {
	k := &g.hooked
	k.mu.Lock()
	defer k.mu.Unlock()
	for h := range k.held {
		h.ReleaseAsync()
	}
}

// afterHooks is the result of a call whose hooks have returned.
func (g *site) afterHooks(h Handle, err error) (Handle, error) {
	if err == nil && g.HasHooks() && h.leaveHooks(false) {
		return Handle{}, engine.ErrClosed
	}
	return h, err
}
