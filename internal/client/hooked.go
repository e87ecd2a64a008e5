package client

import (
	"sync"

	"github.com/redlock-go/redlock/internal/client/engine"
)

// hooked is the locks that their callers do not have yet: of callers with hooks to call, from the grant on until the call
// returns; and of the keys that a set has collected so far. A hook may block, and may call Shutdown or Close. So the end
// of a client does not wait for it, and gives its lock back.
type hooked struct {
	mu   sync.Mutex // held while locks are given back: no user code runs then
	held map[Handle]struct{}
}

// hook calls hooks of a caller. Meanwhile Shutdown does not wait for the caller. If one panics the caller gets no handle,
// and its lock is released.
func (w *want) hook(h Handle, f func()) {
	returned := false
	defer func() {
		if !returned {
			h.drop()
		}
	}()
	if w.running != nil {
		w.running.Leave()
		defer w.running.Enter()
	}
	f()
	returned = true
}

// add notes a lock. The end of the client waits for the attempt of its caller.
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
	if h.site() != nil {
		h.leaveHooks(true)
	}
}

// leaveHooks has the caller get its lock, or drops it. While the client ends it is dropped in any case, or was given
// back; the end waits for that.
func (h Handle) leaveHooks(drops bool) (dropped bool) {
	g := h.site()
	g.Config.Underway.Enter()
	defer g.Config.Underway.Leave()
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
