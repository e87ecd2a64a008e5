package client

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
func (c *Client) Shutdown(ctx context.Context) error {
	ctx = orBackground(ctx)
	done := ctx.Done()
	c.stop()
	for c.running.n.Load() > 0 && !engine.IsClosed(c.late) {
		select {
		case <-c.running.none:
		case <-c.late: // Close was called
		case <-done:
			c.Close()
			return texts.EndOf(ctx)
		}
	}
	c.running.pass() // to the next Shutdown, if several wait
	ended := make(chan struct{})
	go func() {
		c.end()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-done:
		c.hurry()
		<-ended
		return texts.EndOf(ctx)
	}
}

// Close ends all waits, waits for operations under way, up to closeTimeout, and frees everything.
func (c *Client) Close() {
	c.stop()
	defer time.AfterFunc(c.closeTimeout, c.hurry).Stop()
	defer c.hurry() // Shutdown waits no longer
	c.end()
}

// stop refuses new locks, and ends all waits and contexts.
func (c *Client) stop() {
	c.closing.stop.Do(func() {
		close(c.ending)
		c.each((*group.Group).Stop)
		c.running.late.Store(true)
	})
}

// hurry ends the wait for operations under way.
func (c *Client) hurry() { c.closing.hurry.Do(func() { close(c.late) }) }

// end refuses new operations, waits for earlier ones until late, and frees everything.
func (c *Client) end() {
	c.closing.end.Do(func() {
		c.house.close()
		c.underway.Wait(c.late)
		c.each((*group.Group).GiveBack)
		c.underway.Wait(c.late)
		c.each(func(g *group.Group) { g.End(c.late) })
	})
}

// each calls f for all groups at once. f runs no user code.
func (c *Client) each(f func(*group.Group)) {
	var all sync.WaitGroup
	for _, g := range c.groups {
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
func (r *running) begin() bool {
	if r.late.Load() {
		return false
	}
	r.n.Add(1)
	return true
}

func (r *running) end(ending <-chan struct{}) {
	if r.n.Add(-1) == 0 && engine.IsClosed(ending) {
		r.pass()
	}
}

// pass wakes a waiting Shutdown, or the next one.
func (r *running) pass() {
	select {
	case r.none <- struct{}{}:
	default:
	}
}
