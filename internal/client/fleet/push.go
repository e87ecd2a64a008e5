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

// mayPush counts a push, and reports whether it is within the bounds.
func (n *node) mayPush() bool {
	if n.pushes == 0 {
		now := n.fleet.cfg.Clock.Now()
		n.pushes = min(int(now.Sub(n.pushed)/pushEvery), firstPushes)
		n.pushed = now
	}
	n.pushes--
	return n.pushes >= 0
}

// push hands the decoded value, a push, to the owner.
func (n *node) push() {
	switch {
	case !n.id.resp3:
		n.fault = &resp.ProtocolError{Reason: "push in RESP2"}
		return
	case !n.mayPush():
		n.fault = errFlood
		return
	}
	if on := n.fleet.cfg.OnPush; on != nil {
		on(n.index, &n.value)
	}
}
