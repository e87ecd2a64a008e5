package engine

import (
	"time"

	"github.com/redlock-go/redlock/internal/client/fleet"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
)

// Repair: a node that has lost the key of a lock is given it again, when an extend of the lock has won. An extend
// never creates a key. So without repair a lock held for long would lose one node at each restart, and end with the
// last node of a quorum.
//
// It is SET key token NX PX, to this node alone, with the TTL left by the holder's clock. Nothing waits for it, and
// nothing sends it a second time: the next extend finds out whether the key is there.
//
// Its order with the release of the lock needs no further state:
//
//  1. The lock is asked (Repairer), under the driver lock, and refuses once its release was
//     asked for.
//  2. What it allows is sent before the driver lock is given up, and before any other batch.
//  3. So a release asked for after 1 is sent after 2, on the same connection.

// repairs is the repairs under way. The driver lock protects it.
type repairs struct {
	nodes   *nodes
	limit   int                         // of the replies owed by a node
	waiting bool                        // there is one in next
	next    [quorum.MaxNodes]*repairing // to be sent
	owed    [quorum.MaxNodes]int        // replies, to those in next and those already sent
	free    []*repairing                // for use again
}

// repairing is repairs sent to one node together.
type repairing struct {
	fleet.Batch
	repairs *repairs
	node    int
}

// add notes the repair of a key at a node, with the remaining time to live.
func (l *repairs) add(node int, operand []command.Operand, ttl time.Duration) {
	if ttl < time.Millisecond {
		return
	}
	next := l.to(node)
	if next == nil {
		return
	}
	l.nodes.noteTTL(ttl)
	operand[0].TTL = int64(ttl / time.Millisecond)
	next.Buf = command.Append(next.Buf, Acquire, command.Scripts, operand, nil)
	next.Replies++
}

// to is the next repairs for a node, or nil: a node that owes many replies is not asked for more, since it would be
// cut off. The next extend tries again.
func (l *repairs) to(node int) *repairing {
	if l.owed[node] >= l.limit {
		return nil
	}
	l.owed[node]++
	if l.next[node] == nil {
		l.next[node], l.waiting = l.make(node), true
	}
	return l.next[node]
}

func (l *repairs) make(node int) (r *repairing) {
	if last := len(l.free) - 1; last >= 0 {
		r, l.free = l.free[last], l.free[:last]
	} else {
		r = &repairing{repairs: l}
		r.Owner = r
	}
	r.node, r.Buf, r.Replies = node, r.Buf[:0], 0
	return r
}

// send sends the noted repairs. It is called whenever replies were read, before the driver lock is given up.
func (l *repairs) send() {
	if !l.waiting {
		return
	}
	l.waiting = false
	for node := range l.nodes.n {
		r := l.next[node]
		if l.next[node] = nil; r == nil {
			continue
		}
		l.nodes.sendTo(node, &r.Batch, maxTimeout)
	}
}

// Reply implements fleet.Owner. Whether the key was set does not matter: it is no vote.
func (r *repairing) Reply(_, _ int, v *resp.Value) error {
	if v.IsError() {
		if x := command.Refused(Acquire, command.Scripts, 1, v.Bytes, false); x.Fatal {
			return x.Err
		}
		return nil
	}
	if _, fits := command.ReadOne(Acquire, v); !fits {
		return misfit(v)
	}
	return nil
}

// Fail implements fleet.Owner.
func (r *repairing) Fail(_, _ int, _ error) {}

// Done implements fleet.Owner.
func (r *repairing) Done() {
	l := r.repairs
	l.owed[r.node] -= r.Replies
	if cap(r.Buf) <= keepRepair {
		l.free = append(l.free, r)
	}
	l.nodes.answered()
}

// keepRepair bounds the buffers kept for later repairs, in bytes each.
const keepRepair = 64 << 10
