package conn

import (
	"errors"
	"fmt"
	"time"
)

// A server, or a proxy, may close a connection that was idle (Redis: timeout). This is no outage: the connection is
// replaced at once. One Info line for each node says so. It is not reported unless the first dial fails.
//
// Until that dial has ended the node is resting: it has no connection, and counts as up. What is sent to all nodes
// meanwhile, or was sent and not written, waits as for a full kernel buffer. It is written to the next connection if
// that leads to the same server; nothing of it was sent before. If the dial fails, or the server is another one, it
// fails as not sent. So no attempt fails for a connection that it finds closed.
//
// What was written may or may not have reached the server: it fails with ErrIdle. Only an attempt with another token
// may follow.

// ErrIdle marks the failure of commands written to a connection that the server has closed while it was idle.
var ErrIdle = errors.New("the server has closed the idle connection")

// idleFor is how long a connection has been idle at least, for its end to be that of an idle one. Servers count whole
// seconds.
const idleFor = 900 * time.Millisecond

// resting is the sock of a resting node: it takes nothing and has nothing.
type resting struct{}

func (resting) send([]byte) (int, error) { return 0, nil }
func (resting) recv([]byte) (int, error) { return 0, nil }
func (resting) close(bool)               {}

// isResting reports whether a node has no connection, and counts as up.
func (n *node) isResting() bool { return n.sock == resting{} }

// isIdleEnd reports whether the fault of a node is the end of an idle connection: what it owes, if anything, was sent
// after a long rest, and nothing was answered.
func (n *node) isIdleEnd() bool {
	since := n.fleet.now()
	if n.owed.len > 0 {
		since = n.owed.at(0).sentAt
	}
	return !n.isResting() && isEnd(n.fault) && n.owed.next == 0 && since.Sub(n.heard) >= idleFor
}

// rest ends an idle connection. What was written fails, and the rest of the queue stays.
func (n *node) rest() {
	n.cause = n.unsent("read", n.fleet.causeOf(fmt.Errorf("%w: %w", ErrIdle, n.fault)))
	n.sock.close(n.owed.len > 0)
	n.fleet.servers.leave(n.id.RunID, n)
	n.sock, n.fault, n.opening, n.young = resting{}, nil, nil, 0
	n.fleet.enlist()
	if on := n.fleet.cfg.OnDown; on != nil {
		on(n.index)
	}
	n.failOwed(true)
	n.progress = n.fleet.now()
}

// replaces reports whether a resting node's new connection leads to the same server as before, as far as the commands
// in its queue depend on it.
func (n *node) replaces(id identity) bool {
	return id.RunID != "" && id.Life() == n.id.Life() && id.form == n.id.form && id.resp3 == n.id.resp3
}
