package router

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/group"
	"github.com/redlock-go/redlock/internal/client/texts"
)

// closing is the steps of a client's end, each taken once.
type closing struct{ stop, hurry, end sync.Once }

// closeTimeout bounds how long Close waits for work.
const closeTimeout = 250 * time.Millisecond

// Shutdown ends all waits and renewals, waits for the functions of Do and for the releases under way, and frees
// everything: at once when ctx ends, with its error.
func (r *Router) Shutdown(ctx context.Context) error {
	ctx = orBackground(ctx)
	done := ctx.Done()
	r.stop()
	for r.running.n.Load() > 0 && !engine.IsClosed(r.late) {
		select {
		case <-r.running.none:
		case <-r.late: // Close was called
		case <-done:
			r.Close()
			return texts.EndOf(ctx)
		}
	}
	r.running.pass() // to the next Shutdown, if several wait
	ended := make(chan struct{})
	go func() {
		r.end()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-done:
		r.hurry()
		<-ended
		return texts.EndOf(ctx)
	}
}

// Close ends all waits, waits for operations under way, up to closeTimeout, and frees everything.
func (r *Router) Close() {
	r.stop()
	defer time.AfterFunc(r.closeTimeout, r.hurry).Stop()
	defer r.hurry() // Shutdown waits no longer
	r.end()
}

// stop refuses new locks, and ends all waits and contexts.
func (r *Router) stop() {
	r.closing.stop.Do(func() {
		close(r.ending)
		r.each((*group.Group).Stop)
		r.running.late.Store(true)
	})
}

// hurry ends the wait for operations under way.
func (r *Router) hurry() { r.closing.hurry.Do(func() { close(r.late) }) }

// end refuses new operations, waits for earlier ones until late, and frees everything.
func (r *Router) end() {
	r.closing.end.Do(func() {
		r.house.close()
		r.each(func(g *group.Group) { g.End(r.late) })
	})
}

// each calls f for all groups at once. f runs no user code.
func (r *Router) each(f func(*group.Group)) {
	var all sync.WaitGroup
	for _, g := range r.groups {
		all.Go(func() { f(g) })
	}
	all.Wait()
}

// running counts the calls of Do that may have a lock. Each is counted before it asks for a lock, and Shutdown looks
// at the count after all groups have begun to refuse new locks: so it waits for each call with a lock. Later calls
// are not counted, or callers that try again and again would keep it waiting.
type running struct {
	n    atomic.Int64
	late atomic.Bool   // new calls get no lock
	none chan struct{} // holds one: none is left, since the client began to close
}

func newRunning() running { return running{none: make(chan struct{}, 1)} }

// begin counts a call, to be ended by end, unless it comes too late to get a lock.
func (c *running) begin() bool {
	if c.late.Load() {
		return false
	}
	c.n.Add(1)
	return true
}

func (c *running) end(ending <-chan struct{}) {
	if c.n.Add(-1) == 0 && engine.IsClosed(ending) {
		c.pass()
	}
}

// pass wakes a waiting Shutdown, or the next one.
func (c *running) pass() {
	select {
	case c.none <- struct{}{}:
	default:
	}
}
