package fence

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/rules/fencing"
)

const (
	// keepTokens is for how long the token of an idle key is kept, by the nodes' clocks. A clock far ahead or behind
	// costs acquires on its node at most.
	keepTokens = time.Hour
	// maxCollect bounds the time between two collections, where MaxTTL does not.
	maxCollect = 10 * time.Minute
)

// recovery brings back a node that has forgotten its tokens.
type recovery struct {
	fencing.Recovery
	request    fencing.Request
	asked      *question // the request, while it is under way
	connection uint64    // of the last answer
	failed     error     // of a read
}

func (c *Client) recovery(node int) recovery {
	return recovery{Recovery: fencing.Recovery{Fleet: c.fleet, Node: node}}
}

// Turn brings nodes back as far as it can be done now, and returns the pause to the next turn.
// It does not wait for nodes, and calls no user code.
func (c *Client) Turn() time.Duration {
	if c == nil || engine.IsClosed(c.cfg.Ending) {
		return clock.Forever
	}
	for i, x := range c.collecting {
		if x != nil && x.take() {
			c.collecting[i] = nil
		}
	}
	if now := c.cfg.Clock.Now(); now >= c.collectAt {
		c.collecting = c.Collect()
		c.collectAt = c.nextCollect()
	}
	pause := c.collectAt.Sub(c.cfg.Clock.Now())
	for node := range c.forgotten.Load().All() {
		r := c.recoveries[node]
		if r == nil {
			begun := c.recovery(node)
			r, c.recoveries[node] = &begun, &begun
		}
		again := c.advance(r, c.cfg.Ring, nil)
		if r.Done {
			delete(c.recoveries, node)
			again = 0
			if !c.relapsed.Has(node) { // else the answer is older than the relapse
				c.voting(node, r.connection) // the others may read it
			}
		}
		pause = min(pause, again)
	}
	pause = max(pause, time.Millisecond)
	return pause + rand.N(pause)/4 // clients that have begun together spread out
}

// nextCollect is when nodes drop old tokens again: within the longest TTL and a second.
func (c *Client) nextCollect() clock.Instant {
	most := min(c.cfg.MaxTTL, maxCollect) + time.Second
	return c.cfg.Clock.Now().Add(most*5/8 + rand.N(most/8))
}

// Collect has the nodes drop the tokens of keys last locked long ago. So a node that has lost them all is noticed,
// though the client has not locked any key since.
func (c *Client) Collect() (asked []*question) {
	for node := range c.cfg.Nodes {
		if !c.forgotten.Has(node) {
			asked = append(asked, c.ask(node, c.cfg.Ring, fencing.CollectVerb, strconv.FormatInt(keepTokens.Microseconds(), 10)))
		}
	}
	return asked
}

// nonce is a new nonce for a notice. It shows which clients give the notice.
func (c *Client) nonce() string {
	return c.fleet.Name() + "/" + c.cfg.ID + "." + strconv.FormatUint(c.nonces.Add(1), 10)
}

// advance takes the possible steps, and returns the pause to the next one. It is endless while an answer is awaited:
// the answer rings. In an act the floor is at least the act's.
func (c *Client) advance(r *recovery, ring func(), by *View) (pause time.Duration) {
	for {
		if r.asked != nil {
			x := r.asked
			if !x.take() {
				return clock.Forever
			}
			r.connection, r.asked = x.life.connection, nil
			c.answered(r, x.answer, x.err)
		}
		if by == nil && c.doubted.Remove(r.Node) {
			r.Doubt()
		}
		r.request, pause = r.Next(c.cfg.Clock.Now(), c.nonce(), ^c.forgotten.Load())
		var args []string
		switch r.request.Verb {
		case fencing.NoticeVerb:
			c.relapsed.Remove(r.Node)
			args = []string{r.request.Nonce}
		case fencing.ReadVerb:
		case fencing.RejoinVerb:
			if by != nil {
				r.request.Floor = max(r.request.Floor, by.floor())
			}
			args = []string{r.request.Nonce, r.request.Floor.String(), r.request.Fleet}
		default:
			if r.failed != nil && !r.Done { // too few others have a vote
				c.mu.Lock()
				c.nodes[r.Node].fault = r.failed
				c.mu.Unlock()
			}
			r.failed = nil
			return pause
		}
		r.asked = c.ask(r.request.Node, ring, r.request.Verb, args...)
	}
}

// answered takes the answer to the present request.
func (c *Client) answered(r *recovery, a fencing.Answer, err error) {
	request, before, name := r.request, r.Due, c.cfg.Nodes[r.request.Node]
	now := c.cfg.Clock.Now()
	r.Answered(request, a, err == nil, now)
	if request.Verb == fencing.NoticeVerb {
		c.mu.Lock()
		c.nodes[r.Node].due = r.Due
		c.mu.Unlock()
	}
	switch left := r.Due.Sub(now); {
	case err != nil:
		if request.Verb == fencing.ReadVerb {
			r.failed = fmt.Errorf("%s: %w", name, err)
		}
	case request.Verb == fencing.RejoinVerb && a.Code == fencing.OK:
		c.log(slog.LevelDebug, "redlock: node has its fenced vote back", "node", name, "floor", uint64(request.Floor))
	case left > 0 && r.Due != before:
		c.cfg.Forgot(r.Node)
	}
}

// log has the Logger, user code, called by the goroutine of callbacks.
func (c *Client) log(level slog.Level, text string, args ...any) {
	if log := c.cfg.Logger; log != nil {
		c.engine.Announce([]func(){func() { log.Log(context.Background(), level, text, args...) }})
	}
}
