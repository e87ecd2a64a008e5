package fence

import (
	"errors"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
)

// question is one call of the member script, by a node's present connection alone. Each answer shows the node.
type question struct {
	client *Client
	node   int
	life   life
	verb   fencing.Verb
	query  *engine.Query // nil: the node is down

	answer fencing.Answer // once it was taken
	err    error          // why there is none
}

var errNoAnswer = errors.New("no answer that fits")

// ask asks a node. ring is called once there is an answer, if it is not nil.
func (c *Client) ask(node int, ring func(), verb fencing.Verb, args ...string) *question {
	x := &question{client: c, node: node, verb: verb}
	c.mu.Lock()
	x.life = c.nodes[node].life
	c.mu.Unlock()
	if x.life.connection != 0 {
		q := c.engine.Query(node, c.asks)
		q.Connection, q.Ring, q.Replies = x.life.connection, ring, 1
		q.Votes = true // or tokens back from an old file would count
		q.Buf = command.AppendMember(q.Buf, c.cfg.Set, x.life.me, string(verb), args...)
		x.query = q
		c.engine.Ask(q)
	}
	return x
}

// take takes the answer, and reports whether it is there.
func (x *question) take() bool {
	if x.query != nil {
		select {
		case <-x.query.Answered():
		default:
			return false
		}
	}
	x.taken()
	return true
}

// await waits for the answer, and takes it, unless the client ends.
func (x *question) await() {
	if x.query != nil {
		select {
		case <-x.query.Answered():
		case <-x.client.cfg.Ending:
			x.err = errNoAnswer
			x.query.Free()
			return
		}
	}
	x.taken()
}

func (x *question) taken() {
	switch q := x.query; {
	case q == nil:
		x.err = conn.ErrDown
	case q.Err != nil:
		x.err = q.Err
	case q.Said[0].Err != nil:
		x.err = q.Said[0].Err
	case q.Said[0].Fence.Code == 0:
		x.err = errNoAnswer
	default:
		x.answer = q.Said[0].Fence
	}
	if x.query != nil {
		x.query.Free()
	}
	x.noted()
}

// noted notes the answer, if it is of the node's present life. An answer of a former one may be of a vote that is lost:
// the node is asked again.
func (x *question) noted() {
	c, votes, news, changed := x.client, false, false, false
	c.mu.Lock()
	n := &c.nodes[x.node]
	n.heard = true
	if n.number == x.life.number {
		n.fault = x.err
		if x.err == nil {
			changed = n.marker != x.answer.Text
			votes, news = c.shown(x)
		}
	}
	c.mu.Unlock()
	if votes && changed && c.IsChanging() {
		c.know(x)
	}
	switch {
	case news && votes:
		c.cfg.Voting()
	case news:
		c.cfg.Ring()
	}
}

// shown notes what a node has shown: that it serves this client, or that it is to be brought back, at once where it has
// not been given notice. news is whether that was not known. mu is held.
func (c *Client) shown(x *question) (votes, news bool) {
	n, a, m := &c.nodes[x.node], x.answer, fencing.ParseMarker(x.answer.Text)
	n.marker, n.foreign = a.Text, ""
	c.memory = c.memory.Without(quorum.Only(x.node))
	if a.Code == fencing.Foreign {
		n.foreign = a.Text
		return false, c.forgotten.Add(x.node)
	}
	c.largest = max(c.largest, a.Token)
	if m.Serves(fencing.Me{Fleet: c.fleet.Name(), Run: n.run}) {
		c.memory.Add(&c.fleet, x.node, m)
		return true, c.forgotten.Remove(x.node)
	}
	news = c.forgotten.Add(x.node)
	switch {
	case x.verb == fencing.NoticeVerb || x.verb == fencing.ResumeVerb:
	case c.looks.Load():
		n.due = 0
		if m.Phase == fencing.Provisional && m.Me.Run == n.run { // other clients bring it back
			n.due = c.cfg.Clock.Now().Add(c.fleet.Quarantine - a.Age)
		}
	case !c.fleet.HasNotice(m, n.run):
		news = c.doubted.Add(x.node) || news
	}
	return false, news
}

// know has commands name the marker that a node has shown, which serves this client of two configurations. There are
// three such markers, and the client's own configurations do not show which it is. The driver lock is free.
func (c *Client) know(x *question) {
	c.engine.DriverLock().Lock()
	defer c.engine.DriverLock().Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nodes[x.node].number == x.life.number {
		c.encode.Known[x.node] = []byte(x.answer.Text)
	}
}
