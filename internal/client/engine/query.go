package engine

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
)

// Query is commands for one node alone. The replies are votes only if Votes says so. It is sent whether the
// in-flight window is open or not.
//
// Two refer to it: its caller, until Free, and the connection. The connection needs the bytes until the node has
// answered or failed, perhaps long after the caller has gone. The last one gives it back to the pool.
//
// If the node does not know a script, all of it is sent again, by the script's text.
type Query struct {
	conn.Batch // the caller sets Buf and Replies
	Node       int
	Connection uint64         // the connection of the node it is meant for; 0: any
	Timeout    time.Duration  // from sending on
	Said       []command.Said // valid once it is answered: as many as came
	Err        error          // why there are fewer
	Took       time.Duration  // from sending to the last reply
	Ring       func()         // is called once it is answered, under the driver lock; may be nil

	queries  *queries
	answered chan struct{} // holds one
	refs     atomic.Int32

	over   bool          // its caller knows; the rest belongs to the driver
	again  bool          // it is to be sent again
	byText bool          // it calls scripts by their text
	sent   clock.Instant // when it was
	due    clock.Instant // when its time is up
	index  int           // in queries.asked; -1: it is not there
}

// Bounds of the replies to queries owed by a node: a connection that owes too much is sent nothing. Further queries wait.
// The least is more than any query has.
const (
	leastReplies = 16
	maxReplies   = 1024
)

// QueryRoom is how many replies to queries a node may owe beside maxInFlight others: a quarter of them. They have
// their own limit, so neither queries nor votes take the connection from the other, however small maxInFlight is.
func QueryRoom(maxInFlight int) int {
	return min(maxReplies, max(leastReplies, maxInFlight/4))
}

// queries is the queries under way. Callers push; the fields below pool belong to the driver.
type queries struct {
	nodes *nodes
	depth *atomic.Int64 // operations under way

	mu     sync.Mutex
	pushed []*Query // oldest first
	closed bool
	size   atomic.Int64 // of pushed
	pool   sync.Pool

	backlog [quorum.MaxNodes][]*Query      // of each node, oldest first
	owed    [quorum.MaxNodes]int           // replies, to the queries sent to it
	limit   int                            // of these
	heard   [quorum.MaxNodes]clock.Instant // when it has last answered one
	behind  int                            // in all backlogs
	again   []*Query                       // to be sent again, before these: no query to enter a queue overtakes one to leave it
	asked   []*Query                       // sent, and not ended
}

// init bounds what a node owes; 0 is no bound of other replies.
func (l *queries) init(n *nodes, depth *atomic.Int64, maxInFlight int) {
	l.nodes, l.depth = n, depth
	l.limit = maxReplies
	if maxInFlight > 0 {
		l.limit = QueryRoom(maxInFlight)
	}
}

// query returns one for a node, to be given its commands, to Ask and to Free.
func (l *queries) query(node int, timeout time.Duration) *Query {
	q, _ := l.pool.Get().(*Query)
	if q == nil {
		q = &Query{queries: l, answered: make(chan struct{}, 1)}
		q.Owner = q
	}
	q.Node, q.Timeout, q.Connection, q.Buf, q.Replies = node, timeout, 0, q.Buf[:0], 0
	q.Said, q.Err, q.Ring, q.Votes, q.over, q.again, q.byText, q.index = q.Said[:0], nil, nil, false, false, false, false, -1
	q.refs.Store(2)
	return q
}

// begin queues a query to be sent, and reports whether it has. A closed engine takes none: the query is answered with
// ErrClosed, and does not ring.
func (l *queries) begin(q *Query) bool {
	l.depth.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.pushed = append(l.pushed, q)
		l.size.Add(1)
		return true
	}
	l.depth.Add(-1)
	q.over, q.Err = true, ErrClosed
	q.answered <- struct{}{}
	q.Free()
	return false
}

// follow queues a query behind an operation, if that is queued. Of two in one turn of the driver the operation is sent
// first. Its caller is done with the query.
func (l *queries) follow(q *Query, queued bool) {
	if queued {
		l.begin(q)
	} else {
		q.Free()
	}
	q.Free()
}

// Answered receives once: when the query is answered, or will not be.
func (q *Query) Answered() <-chan struct{} { return q.answered }

// Free takes back an asked query, answered or not.
func (q *Query) Free() {
	if q.refs.Add(-1) > 0 {
		return
	}
	select {
	case <-q.answered:
	default:
	}
	clear(q.Said)
	q.queries.pool.Put(q)
}

// Reply implements conn.Owner.
func (q *Query) Reply(_, i int, v *resp.Value) error {
	s := command.ReadSaid(v)
	q.queries.heard[q.Node] = q.queries.nodes.clock.Now()
	if !q.over {
		q.Said = append(q.Said, s)
	}
	switch {
	case s.Fatal: // Fail does not follow if this was the last reply
		q.end(s.Err)
		return s.Err
	case i == q.Replies-1:
		q.again = !q.over && !q.byText && slices.ContainsFunc(q.Said, func(s command.Said) bool { return s.Code == "NOSCRIPT" })
		if q.again {
			return nil
		}
		if !q.over {
			q.Took = q.queries.heard[q.Node].Sub(q.sent)
		}
		q.end(nil)
	}
	return nil
}

// Fail implements conn.Owner.
func (q *Query) Fail(_, _ int, err error) { q.end(err) }

// Done implements conn.Owner.
func (q *Query) Done() {
	l := q.queries
	l.owed[q.Node] -= q.Replies
	l.nodes.unanswered.Leave()
	if !q.again || q.over {
		q.Free()
		return
	}
	l.unlist(q)
	q.Buf, q.Said, q.again, q.byText = command.ByText(q.Buf, 0), q.Said[:0], false, true
	l.again = append(l.again, q)
}

// unlist takes a query out of the sent ones, if it is there.
func (l *queries) unlist(q *Query) {
	if q.index < 0 {
		return
	}
	last := len(l.asked) - 1
	l.asked[q.index] = l.asked[last]
	l.asked[q.index].index = q.index
	l.asked[last] = nil
	l.asked = l.asked[:last]
	q.index = -1
}

// end ends the query for its caller, once.
func (q *Query) end(err error) {
	if q.over {
		return
	}
	q.queries.unlist(q)
	q.over, q.Err = true, err
	q.queries.depth.Add(-1)
	q.answered <- struct{}{}
	if q.Ring != nil {
		q.Ring()
	}
}

// ask sends the pushed queries, within the bound of each node and the bound of a turn. A node that is down ends its
// queries at once.
func (l *queries) ask() {
	if l.size.Load() == 0 && l.behind == 0 && len(l.again) == 0 {
		return
	}
	now := l.nodes.clock.Now()
	for _, q := range l.again {
		l.send(q, now)
	}
	clear(l.again)
	l.again = l.again[:0]
	l.takeAll(now)
	left := scanWaiting
	for node := range l.nodes.n {
		for b := &l.backlog[node]; left > 0 && len(*b) > 0 && (l.owed[node] == 0 || l.owed[node]+(*b)[0].Replies <= l.limit); left-- {
			l.send(l.pop(node), now)
		}
	}
}

// send sends a query, or ends it where its connection has ended.
func (l *queries) send(q *Query, now clock.Instant) {
	if q.Connection != 0 && q.Connection != l.nodes.Node(q.Node).Connection {
		q.end(errReconnected)
		q.Free()
		return
	}
	q.sent, q.due, q.index = now, now.Add(q.Timeout), len(l.asked)
	l.asked = append(l.asked, q)
	l.owed[q.Node] += q.Replies
	l.nodes.sendTo(q.Node, &q.Batch, q.Timeout)
}

// expire ends the queries without an answer in time. A node that answers others meanwhile is busy with the earlier
// ones, and not silent. Waiting queries are not sent any more.
func (l *queries) expire(now clock.Instant) {
	isOver := func(q *Query) bool { return now >= max(q.due, l.heard[q.Node].Add(q.Timeout)) }
	for i := len(l.asked) - 1; i >= 0; i-- {
		if q := l.asked[i]; isOver(q) {
			q.end(errTimeout)
		}
	}
	for node := range l.nodes.n {
		for b := &l.backlog[node]; len(*b) > 0 && isOver((*b)[0]); {
			q := l.pop(node)
			q.end(errTimeout)
			q.Free()
		}
	}
}

// IsTimeout reports whether an error of a Query means: no answer in time.
func IsTimeout(err error) bool { return err == errTimeout }

// takeAll puts what was pushed into the backlogs.
func (l *queries) takeAll(now clock.Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range l.pushed {
		q.due = now.Add(q.Timeout)
		l.backlog[q.Node] = append(l.backlog[q.Node], q)
	}
	l.behind += len(l.pushed)
	clear(l.pushed)
	l.pushed = l.pushed[:0]
	l.size.Store(0)
}

// pop takes the oldest out of the backlog of a node.
func (l *queries) pop(node int) *Query {
	b := l.backlog[node]
	q := b[0]
	b[0] = nil
	if len(b) > 1 {
		l.backlog[node] = b[1:]
	} else {
		l.backlog[node] = b[:0] // so one at a time needs no memory
	}
	l.behind--
	return q
}

// close refuses further queries.
func (l *queries) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
}
