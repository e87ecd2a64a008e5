package conn

import (
	"errors"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/wire/refusal"
	"github.com/redlock-go/redlock/resp"
)

// A server may become a replica of another one, load its data, and be promoted again, while a connection lasts. So what
// may follow such a change carries a look: the questions of the handshake about role, history and persistence, right
// before a batch. The answers come before the batch's, so no vote of a node is counted that has forgotten. A change ends
// the connection, and so does a refusal; the next handshake does the rest.
//
// When to look, the server itself says: it pushes that all its keys are gone, to each connection with tracking, when it
// empties its memory for the other's data (emptyData and swapMainDbWithTempDb in the source of Redis 7), and after
// FLUSHALL. The handshake switches tracking on, for no key. A batch may have been sent before this word was read: after a
// pause of this process, for instance. What the server answers behind its word, without a look between, does not count:
// the batch fails there ([node.doubt]), unless its owner can tell which of its replies are facts all the same (Doubter).
//
// Where tracking is forbidden, or the connection is in RESP2, a silence is followed by a look. Only a batch that is on its
// way meanwhile has none before it: for longer than a load and a promotion take. While it is a replica a server refuses
// writes, so answers at short distances show that it has been a master all the time. One that takes writes as a replica,
// by a setting of its own, or that went on from where its master was, is found within lookEvery, on all connections.
const (
	// lookAfter is the silence before a batch that may hide a change: less than the shortest one measured, 11 ms on one
	// machine (Redis 7.0.15, without a disk, no delay of its own).
	lookAfter = 5 * time.Millisecond
	// lookEvery is the age of the last look at most, when a batch is sent.
	lookEvery = time.Second
	// maxLook bounds an answer, for a server with many replicas: it is not asked again.
	maxLook = maxBulk / 2
)

var (
	// errChanged ends a connection to a server saying something else than at its beginning.
	errChanged = errors.New("server was a replica meanwhile, or has changed its persistence")
	// errUnshown ends one to a server that does not say it any more.
	errUnshown = errors.New("server does not show whether it was a replica meanwhile")
)

// ErrEmptied marks the failure of commands that a server has answered after it had lost all keys, where it has not said
// since that it is the master that it was. They were sent before its word of that was read.
var ErrEmptied = errors.New("server has lost all keys meanwhile, and was perhaps a replica")

// isEmptied reports whether a push says that all keys are gone.
func isEmptied(push *resp.Value) bool {
	it := push.Elements()
	return it.Next() && string(it.Value().Bytes) == "invalidate" && it.Next() && it.Value().Null
}

// look is one of a node. Another one does not begin before its answers are there.
type look struct {
	Batch
	node *node
	is   identity      // as the answers so far have shown
	last clock.Instant // when it was sent last; the node is known to be a master since
	open bool          // it is not answered yet
	// emptied is whether the server has said that all its keys are gone since.
	emptied bool
}

var (
	lookOfAll        = resp.AppendCommand(nil, "INFO", "replication")
	lookOfPersistent = resp.AppendCommand(resp.AppendCommand(nil, "INFO", "replication"), "INFO", "persistence")
)

func (l *look) init(n *node) {
	l.node, l.Owner, l.Buf, l.Replies = n, l, lookOfAll, 1
	if n.persistent {
		l.Buf, l.Replies = lookOfPersistent, 2
	}
}

// isVote reports whether the replies count only where the server is the master that it was.
func (b *Batch) isVote() bool {
	return !b.single || b.Votes
}

// isDue reports whether b, to be sent now, needs a look before it.
func (l *look) isDue(b *Batch, now clock.Instant) bool {
	n := l.node
	return n.fleet.cfg.Looks && n.id.looks && !l.open && b.isVote() && !n.isResting() &&
		(l.emptied || !n.id.tracks && now.Sub(max(l.last, n.wrote)) >= lookAfter || now.Sub(l.last) >= lookEvery)
}

// ask queues the look, before what is sent next.
func (l *look) ask(now clock.Instant) {
	l.is, l.last, l.open, l.emptied = l.node.id, now, true, false
	l.sentAt, l.single, l.waiting = now, true, 1
	l.node.owed.push(&l.Batch)
}

// doubt notes that all keys of the server are gone. What it owes up to a look was perhaps asked of a replica, or of a master
// with the data of another server.
func (n *node) doubt() {
	n.look.emptied = true
	if n.fleet.cfg.Looks && n.id.looks {
		n.owed.doubted = n.owed.before(&n.look.Batch)
	}
}

// isDoubted reports whether the replies of b, the oldest batch, are not to be counted.
func (n *node) isDoubted(b *Batch) bool {
	return n.owed.doubted > 0 && b.isVote()
}

// Reply implements Owner. A server that refuses a look has shown nothing. So the connection ends, and the next handshake
// judges the refusal: what was sent behind the look fails.
func (l *look) Reply(_, _ int, v *resp.Value) error {
	if v.IsError() {
		return fmt.Errorf("%w: %w", errUnshown, refusal.Read(v).Err)
	}
	return l.is.noteInfo(v)
}

// Fail implements Owner.
func (l *look) Fail(int, int, error) {}

// Done implements Owner.
func (l *look) Done() {
	n, is := l.node, &l.is
	l.open = false
	if n.fault == nil && n.sock != nil && n.isChanged(is) {
		n.fault = errChanged
	}
}

// isChanged reports whether a server says something else about its memory than when it was connected.
func (n *node) isChanged(id *identity) bool {
	return id.Life() != n.id.Life() || n.says(id).Keeps != n.says(&n.id).Keeps
}
