package fleet

import (
	"errors"
	"time"

	"github.com/redlock-go/redlock/resp"
)

// A node pushes a key once for each reply of a tracked read, and besides when others delete all keys. More pushes
// keep the node's reader from the other nodes.
const (
	firstPushes = 8 << 10  // of a connection, beyond its replies
	mostPushes  = 64 << 10 // for replies in the past
	pushEvery   = time.Millisecond
)

var errFlood = errors.New("conn: node pushes more than it was asked to track")

// push counts the decoded value, a push, and hands it to the owner if it is within the bounds.
func (n *node) push() {
	if n.pushes == 0 {
		now := n.fleet.cfg.Clock.Now()
		n.pushes, n.pushed = min(int(now.Sub(n.pushed)/pushEvery), firstPushes), now
	}
	n.pushes--
	switch on := n.fleet.cfg.OnPush; {
	case !n.id.resp3:
		n.fault = &resp.ProtocolError{Reason: "push in RESP2"}
	case n.pushes < 0:
		n.fault = errFlood
	case on != nil:
		on(n.index, &n.value)
	}
}
