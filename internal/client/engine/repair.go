package engine

import (
	"time"

	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
)

// Repair: a node that has lost the key of a lock is given it again, when an extend of the lock has won. An extend
// never creates a key. So without repair a lock held for long would lose one node at each restart, and end with the
// last node of a quorum.
//
// It is SET key token NX PX, or of a shared lock its acquire past gates, to this node alone, with the TTL left by the holder's clock. Nothing waits for it, and
// nothing sends it a second time: the next extend finds out whether the key is there.
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

// add notes the repair of a key at a node, with the remaining time to live. A node that owes many replies is not asked
// for more, since it would be cut off: the next extend tries again.
func (rp *repairs) add(node int, operand []command.Operand, ttl time.Duration) {
	q, owed := rp.next[node], rp.queries.owed[node]
	if q != nil {
		owed += q.Replies
	}
	if ttl < time.Millisecond || owed >= rp.queries.limit {
		return
	}
	if q == nil {
		q = rp.queries.query(node, maxTimeout)
		q.over = true
		q.drop() // by its caller: there is none
		rp.next[node], rp.waiting = q, true
	}
	rp.queries.nodes.noteTTL(ttl)
	operand[0].TTL = int64(ttl / time.Millisecond)
	q.Buf = command.AppendRepair(q.Buf, operand)
	q.Replies++
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
