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

// recovery is the client's business with a node: it brings the node back after it has forgotten its tokens, and else
// has it drop those of keys last locked long ago. So a node that has lost them all is noticed, though the client has
// not locked any key since.
type recovery struct {
	fencing.Recovery
	request   fencing.Request
	asked     *question // the request, while it is under way
	collectAt clock.Instant
}

// Turn does for each node what can be done now, and returns the pause to the next turn.
// It does not wait for nodes, and calls no user code.
func (c *Client) Turn() time.Duration {
	if len(c.nodes) == 0 || engine.IsClosed(c.cfg.Ending) {
		return clock.Forever
	}
	pause := time.Hour
	for node := range c.recoveries {
		pause = min(pause, c.advance(&c.recoveries[node]))
	}
	pause = max(pause, time.Millisecond)
	return pause + rand.N(pause)/4 // clients that have begun together spread out
}

// nextCollect is when a node drops old tokens again: within the longest TTL and a second.
func (c *Client) nextCollect() clock.Instant {
	most := min(c.cfg.MaxTTL, maxCollect) + time.Second
	return c.cfg.Clock.Now().Add(most*5/8 + rand.N(most/8))
}

// nonce is a new nonce for a notice. It shows which clients give the notice.
func (c *Client) nonce() string {
	return c.fleet.Name() + "/" + c.cfg.ID + "." + strconv.FormatUint(c.nonces.Add(1), 10)
}

// advance takes the possible steps with a node, and returns the pause to the next one. It is endless while an answer is
// awaited: the answer rings.
func (c *Client) advance(r *recovery) (pause time.Duration) {
	for {
		if x := r.asked; x != nil {
			if !x.take() {
				return clock.Forever
			}
			r.asked = nil
			c.answered(r, x)
		}
		var args []string
		if now := c.cfg.Clock.Now(); c.forgotten.Has(r.Node) {
			floor := c.given(r)
			if c.doubted.Remove(r.Node) {
				r.Doubt()
			}
			r.request, pause = r.Next(now, c.nonce(), ^c.forgotten.Load())
			r.request.Floor = max(r.request.Floor, floor)
		} else {
			r.Recovery, r.request = fencing.Recovery{Fleet: c.fleet, Node: r.Node}, fencing.Request{Node: r.Node}
			pause = r.collectAt.Sub(now)
			if pause <= 0 {
				r.collectAt = c.nextCollect()
				r.request.Verb, args = fencing.CollectVerb, []string{strconv.FormatInt(keepTokens.Microseconds(), 10)}
			}
		}
		switch q := &r.request; {
		case q.Verb == "":
			return pause
		case c.looks.Load(): // the node is asked all the same, and its answer begins nothing
			q.Verb, args = fencing.ShowVerb, nil
		case q.Verb == fencing.NoticeVerb:
			if c.keeps(r.Node) { // it forgets nothing in a restart: if it had its vote before, it has it again
				q.Verb = fencing.ResumeVerb
			}
			args = []string{q.Nonce}
		case q.Verb == fencing.RejoinVerb:
			args = []string{q.Nonce, q.Floor.String(), q.Fleet}
		}
		r.asked = c.ask(r.request.Node, c.cfg.Ring, r.request.Verb, args...)
	}
}

// keeps reports whether a node forgets nothing in a restart.
func (c *Client) keeps(node int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[node].keeps
}

// answered takes the answer to the present request.
func (c *Client) answered(r *recovery, x *question) {
	if x.verb == fencing.CollectVerb {
		return
	}
	before, name, now := r.Due, c.cfg.Nodes[x.node], c.cfg.Clock.Now()
	r.Answered(r.request, x.answer, x.err == nil, now)
	if x.verb == fencing.ShowVerb {
		return
	}
	c.mu.Lock()
	c.nodes[r.Node].due = r.Due
	if x.err != nil && x.verb == fencing.ReadVerb { // perhaps too few others have a vote
		c.nodes[r.Node].fault = fmt.Errorf("%s: %w", name, x.err)
	}
	c.mu.Unlock()
	switch {
	case x.verb == fencing.RejoinVerb && x.answer.Code == fencing.OK:
		c.log(slog.LevelDebug, "redlock: node has its fenced vote back", "node", name, "floor", uint64(r.request.Floor))
	case r.Due > now && r.Due != before:
		c.cfg.Forgot(r.Node)
	}
}

// log has the Logger, user code, called by the goroutine of callbacks.
func (c *Client) log(level slog.Level, text string, args ...any) {
	if log := c.cfg.Logger; log != nil {
		c.engine.Inform(engine.News(func() { log.Log(context.Background(), level, text, args...) }))
	}
}
