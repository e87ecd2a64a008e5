package fence

import (
	"errors"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
)

// question is one call of the member script, by a node's present connection alone.
type question struct {
	client *Client
	node   int
	life   life
	verb   fencing.Verb
	args   []string
	ring   func()
	query  *engine.Query // nil: the node is down
	shows  bool          // the last reply, behind the answer, has the marker

	answer fencing.Answer // once it was taken
	err    error          // why there is none
}

var errNoAnswer = errors.New("no answer that fits")

// ask asks a node. ring is called once there is an answer.
func (c *Client) ask(node int, ring func(), verb fencing.Verb, args ...string) *question {
	x := &question{client: c, node: node, verb: verb, args: args, ring: ring}
	c.mu.Lock()
	x.life = c.nodes[node].life
	c.mu.Unlock()
	if x.life.connection != 0 {
		x.send()
	}
	return x
}

// send makes the call. A node that forgets nothing in a restart is resumed before it is given notice: if it had its
// vote before, it has it again.
func (x *question) send() {
	c := x.client
	q := c.engine.Query(x.node, c.asks)
	q.Connection, q.Ring, q.Replies = x.life.connection, x.ring, 0
	ask := func(verb fencing.Verb, args ...string) {
		q.Buf = command.AppendMember(q.Buf, c.cfg.Set, x.life.me, string(verb), args...)
		q.Replies++
	}
	if x.verb == fencing.NoticeVerb && c.cfg.Persistent.Has(x.node) {
		ask(fencing.ResumeVerb)
	}
	ask(x.verb, x.args...)
	x.shows = x.verb != fencing.NoticeVerb || !c.isProvisional(x.node)
	if x.shows { // or it is asked twice as often while it waits
		ask(fencing.ShowVerb)
	}
	x.query = q
	c.engine.Ask(q)
}

// isProvisional reports whether a node, as it has shown last, waits for its vote.
func (c *Client) isProvisional(node int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fencing.ParseMarker(c.nodes[node].marker).Phase == fencing.Provisional
}

// take takes the answer, and reports whether it is there.
func (x *question) take() bool {
	if x.query == nil {
		x.noted(conn.ErrDown, "")
		return true
	}
	select {
	case <-x.query.Answered():
	default:
		return false
	}
	var said, marker command.Said
	all, err := x.query.Said, x.query.Err
	if err == nil {
		if last := len(all) - 1; x.shows {
			said, marker = all[last-1], all[last]
		} else {
			said = all[last]
		}
	}
	x.query.Free()
	switch {
	case err != nil:
	case said.Err != nil:
		err = said.Err
	case said.Fence.Code == 0:
		err = errNoAnswer
	default:
		x.answer = said.Fence
		x.client.NoVote(x.node, x.answer)
	}
	x.noted(err, marker.Fence.Text)
	return true
}

// noted notes the answer to the question, if the connection is still the node's.
func (x *question) noted(err error, marker string) {
	c, a, news := x.client, x.answer, false
	n := &c.nodes[x.node]
	x.err = err
	c.heard.Add(x.node)
	c.mu.Lock()
	if n.connection == x.life.connection {
		if x.shows || a.Code != fencing.Amnesia {
			c.memory = c.memory.Without(quorum.Only(x.node))
			if m := fencing.ParseMarker(marker); m.Serves(fencing.Me{Fleet: c.fleet.Name(), Run: x.life.run}) {
				c.memory.Add(&c.fleet, x.node, m)
				news = n.marker != marker
			}
			n.marker = marker
		}
		n.fault = err
		if err == nil && a.Code != fencing.Foreign {
			n.foreign = ""
		}
	}
	c.mu.Unlock()
	if news && c.IsChanging() {
		c.know(x.node, x.life.connection, marker)
	}
}

// know has commands name the marker shown by a node on a connection, which serves this client of two configurations.
// There are three such markers, and the client's own configurations do not show which it is. The driver lock is free.
func (c *Client) know(node int, connection uint64, marker string) {
	c.engine.DriverLock().Lock()
	defer c.engine.DriverLock().Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nodes[node].connection == connection {
		c.encode.Known[node] = []byte(marker)
	}
}

// bell wakes a goroutine that waits for answers.
type bell chan struct{} // holds one

func newBell() bell { return make(bell, 1) }

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default: // it will look
	}
}

// await waits for a ring. It is false if the client ends instead.
func (b bell) await(ending <-chan struct{}) bool {
	select {
	case <-b:
		return true
	case <-ending:
		return false
	}
}
