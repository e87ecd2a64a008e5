package fleet

import (
	"time"

	"github.com/redlock-go/redlock/quorum"
)

// first is the nodes in their first dial. The lock protects it.
type first struct {
	began   time.Time
	last    time.Time     // when the last of the dials ended so far has
	dialing quorum.Set    // nodes whose dial has not
	changed chan struct{} // closed by the end of the next dial
}

// ended notes the end of a node's dial.
func (f *first) ended(node int) {
	if !f.dialing.Has(node) {
		return
	}
	f.last = time.Now()
	f.dialing.Remove(node)
	close(f.changed)
	f.changed = make(chan struct{})
}

// AwaitFirst waits until the first dial of every node has succeeded or failed, or those of a quorum have succeeded and
// the others have had their time, or done is closed, or the fleet. It does not wait for a Dialer that outlives its
// context. It is called without the lock. A nil isQuorum waits for every node.
func (f *Fleet) AwaitFirst(done <-chan struct{}, isQuorum func(up quorum.Set) bool) {
	bound := 2*f.cfg.DialTimeout + overrun // of the look-up and the connect
	if f.cfg.Credentials != nil {
		bound += CredentialsTimeout
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		f.lock.Lock()
		first, up := f.first, quorum.First(len(f.nodes))&^f.away
		closed := f.closed
		f.lock.Unlock()
		until := first.began.Add(bound)
		if isQuorum != nil && isQuorum(up) {
			until = first.last.Add(first.last.Sub(first.began) + f.cfg.Stragglers)
		}
		left := time.Until(until)
		if first.dialing == 0 || closed || left <= 0 {
			return
		}
		timer.Reset(left)
		select {
		case <-first.changed:
		case <-timer.C:
		case <-f.ctx.Done():
		case <-done:
			return
		}
	}
}
