package client

import (
	"context"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/client/texts"
)

// closeTimeout bounds how long Close waits for work.
const closeTimeout = 250 * time.Millisecond

// Shutdown ends all waits and renewals, waits for the functions of Do and for the releases under way, and frees
// everything: at once when ctx ends, with its error.
func (c *Client) Shutdown(ctx context.Context) error {
	ctx = orBackground(ctx)
	done := ctx.Done()
	c.stop()
	if !c.running.Wait(c.late, done) {
		c.Close()
		return texts.EndOf(ctx)
	}
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
	c.stopping.Do(func() {
		close(c.ending)
		c.each((*site).stop)
		c.running.Shut()
	})
}

// hurry ends the wait for operations under way.
func (c *Client) hurry() { c.hurrying.Do(func() { close(c.late) }) }

// end refuses new operations, waits for earlier ones until late, and frees everything.
func (c *Client) end() {
	c.finishing.Do(func() {
		c.house.close()
		c.underway.Shut()
		c.underway.Wait(c.late, nil)
		c.each(func(g *site) { g.end(c.late) })
	})
}

// each calls f for all groups at once. f runs no user code.
func (c *Client) each(f func(*site)) {
	var all sync.WaitGroup
	for _, g := range c.groups {
		all.Go(func() { f(g) })
	}
	all.Wait()
}
