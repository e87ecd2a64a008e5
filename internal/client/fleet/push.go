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

// beginSkip is called with a push at in[r], refused by the decoder. A large one can be valid: a server that drops all
// its keys names many at once. It is a fault of the connection only if Skip finds it malformed.
func (n *node) beginSkip() {
	n.fault = nil
	n.decoder.Reset()
	n.skipping = true
}

// skip reads over bytes of a push. It returns false if it needs more of them.
func (n *node) skip() bool {
	k, err := n.decoder.Skip(n.in[n.r:n.w])
	n.r += k
	switch err {
	case nil:
		n.skipping = false
	case resp.ErrIncomplete:
		return false
	default:
		n.fault = err
	}
	return true
}
