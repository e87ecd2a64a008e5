package engine

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
)

// Repair: a node that has lost the key of a lock is given it again, when an extend of the lock has won. An extend
// never creates a key. So without repair a lock held for long would lose one node at each restart, and end with the
// last node of a quorum.
//
// It is SET key token NX PX, or of a shared lock its acquire past gates, to this node alone, with the TTL left by the
// holder's clock. Nothing waits for it. What fails is not sent again: the next extend finds out whether the key is there.
//
// What is denied is sent again at once, a few times, for an extend has its own rival:
//
//  1. The extend changes the key at the nodes that have it, and the first waiter is notified.
//  2. It does not know why the key has changed, and asks all nodes for it. At this one the key is free.
//  3. Its SET is there after one round trip, as the repair is, and takes the key until its attempt is lost: for one
//     more. The next extend would bring the next rival.
//
// Its order with the release of the lock needs no further state:
//
//  1. The lock is asked (Repairer), under the driver lock, and refuses once its release was
//     asked for.
//  2. What it allows is sent before the driver lock is given up, and before any other batch.
//  3. So a release asked for after 1 is sent after 2, on the same connection.

// repairs is the repairs to be sent: for each node a query without a waiting caller. The driver lock protects it.
type repairs struct {
	queries *queries
	waiting bool // there is one in next
	next    [quorum.MaxNodes]*Query
}

// repair is that of a lock at a node.
type repair struct {
	operand command.Operand
	lock    Repairer
	life    uint64
	denied  int  // how often
	byText  bool // the node does not know the script of a shared lock
}

// maxDenied is how often a repair is denied before it is left to the next extend.
const maxDenied = 4

// add notes a repair, with the remaining time to live. A node that owes many replies is not asked for more, since it
// would be cut off: the next extend tries again.
func (rp *repairs) add(node int, r repair, now clock.Instant) {
	ttl := r.lock.Repair(r.life, node, now)
	q, owed := rp.next[node], rp.queries.owed[node]
	if q != nil {
		owed += q.Replies
	}
	if ttl < time.Millisecond || owed >= rp.queries.limit {
		return
	}
	if q == nil {
		q = rp.queries.query(node, MaxTimeout)
		q.over = true
		q.drop() // by its caller: there is none
		rp.next[node], rp.waiting = q, true
	}
	rp.queries.nodes.noteTTL(ttl)
	r.operand.TTL = int64(ttl / time.Millisecond)
	from := len(q.Buf)
	q.Buf = command.AppendRepair(q.Buf, []command.Operand{r.operand})
	if r.byText {
		q.Buf = command.ByText(q.Buf, from)
	}
	q.repairs = append(q.repairs, r)
	q.Replies++
}

// answered sends a repair again if the node has denied it, or does not know its script.
func (rp *repairs) answered(node int, r repair, s command.Said) {
	unknown := isNoScript(s) && !r.byText
	r.denied, r.byText = r.denied+1, r.byText || unknown
	if unknown || s.Err == nil && !s.OK && s.Kind != resp.Integer && r.denied < maxDenied {
		rp.add(node, r, rp.queries.nodes.clock.Now())
	}
}

// send sends the noted repairs. It is called whenever replies were read, before the driver lock is given up.
func (rp *repairs) send() {
	if !rp.waiting {
		return
	}
	rp.waiting = false
	for node, q := range rp.next {
		if q != nil {
			rp.next[node] = nil
			rp.queries.send(q)
		}
	}
}
