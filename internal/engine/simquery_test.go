package engine

import (
	"slices"
	"strconv"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/resp"
)

// words are the commands of a query.
func words(b *conn.Batch) (cmds []sentCommand) {
	var d resp.Decoder
	for buf := b.Buf; len(buf) > 0; {
		var v resp.Value
		n, err := d.Decode(buf, &v)
		if err != nil {
			panic(err)
		}
		cmd := sentCommand{errand: true}
		for it := v.Elements(); it.Next(); {
			cmd.words = append(cmd.words, string(it.Value().Bytes))
		}
		cmds, buf = append(cmds, cmd), buf[n:]
	}
	return cmds
}

// query runs a command that is no vote: ECHO, which is answered with a number.
func (m *master) query(dst []byte, cmd []string) []byte {
	if cmd[0] != "ECHO" {
		m.world.check.failf("wire", "a master was sent %q", cmd)
	}
	n, _ := strconv.ParseInt(cmd[1], 10, 64)
	if m.world.rules.confuses && m.world.chance(5) {
		n++
	}
	return appendInteger(dst, n)
}

// asker is a user of a client that asks nodes for numbers, several at once, and gives some of
// its queries up before they are answered.
type asker struct {
	client *client
	asked  []*asking
}

// asking is a query under way.
type asking struct {
	*Query
	first int64 // number; the others follow it
	since time.Duration
	late  bool // its client was closed before
}

// next asks some nodes.
func (a *asker) next() {
	c, w := a.client, a.client.world
	if w.ending {
		return
	}
	for range 1 + w.IntN(4) {
		w.check.queries++
		node, n := w.IntN(c.fleet.Len()), 1+w.IntN(3)
		q := c.engine.Query(node, w.between(time.Millisecond, 50*time.Millisecond))
		if w.chance(30) {
			q.Connection = c.fleet.Node(node).Connection
		}
		s := &asking{q, 1000 * int64(w.check.queries), w.now(), c.dead}
		for i := range int64(n) {
			q.Buf = resp.AppendArray(q.Buf, 2)
			q.Buf = resp.AppendBulkString(q.Buf, "ECHO")
			q.Buf = resp.AppendBulkString(q.Buf, strconv.FormatInt(s.first+i, 10))
		}
		q.Replies = n
		w.note("ask", c.index, node, n)
		a.asked = append(a.asked, s)
		c.engine.Ask(q)
	}
	if w.chance(20) {
		c.after(w.between(0, time.Millisecond), a.giveUp)
	}
	if !c.dead {
		c.after(w.between(0, 10*time.Millisecond), a.next)
	}
}

// giveUp leaves the oldest query to its connection.
func (a *asker) giveUp() {
	if len(a.asked) > 0 {
		a.client.world.note("give up", a.client.index, a.asked[0].Node, 0)
		a.asked[0].Free()
		a.asked = slices.Delete(a.asked, 0, 1)
	}
}

// poll takes answers.
func (a *asker) poll() (back bool) {
	a.asked = slices.DeleteFunc(a.asked, func(s *asking) bool {
		if len(s.Answered()) == 0 {
			return false
		}
		<-s.Answered()
		a.client.world.check.answer(a.client, s)
		s.Free()
		back = true
		return true
	})
	return back
}

// answer checks that a query has its own answers, or a reason to have fewer.
func (c *checker) answer(cl *client, s *asking) {
	now, link := c.world.now(), cl.fleet.links[s.Node]
	for i, said := range s.Said {
		if number := said.Ints[0]; said.Err == nil && number != s.first+int64(i) && number != nonsense {
			c.failf("query", "client %d: node %d was asked for %d, and has said %d", cl.index, s.Node, s.first+int64(i), number)
		}
	}
	switch n := len(s.Said); {
	case s.late || s.Err == ErrClosed:
		if !s.late || s.Err != ErrClosed {
			c.failf("query", "client %d: a query failed with %v, closed: %v", cl.index, s.Err, s.late)
		}
	case s.Err == nil && n != s.Replies:
		c.failf("query", "client %d: %d of %d answers, and no error", cl.index, n, s.Replies)
	case s.Err == nil, link.changed >= s.since, !link.up, n > 0 && s.Said[n-1].Fatal:
	case s.Err == errTimeout && cl.clock.Now() >= s.due:
	default:
		c.failf("query", "client %d: a query of node %d failed, which had no reason: %v, after %v", cl.index, s.Node, s.Err, now-s.since)
	}
}

// waits checks that a query does not wait for longer than its timeout after all answers of
// its node.
func (c *checker) waits(cl *client, s *asking) {
	heard := max(s.since, cl.clock.truth(cl.engine.queries.heard[s.Node]))
	if d := s.Timeout + 2*tickLate; c.world.now()-heard > d && !cl.dead && cl.ran(d) {
		c.failf("stuck", "client %d: a query of node %d is not answered %v after its timeout", cl.index, s.Node, c.world.now()-heard-s.Timeout)
	}
}
