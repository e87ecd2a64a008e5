package engine

import "sync"

// cleanup is the release after a failed, late or cancelled acquire. No caller waits for it.
type cleanup struct {
	Op
	pool *sync.Pool
	key  []byte
}

// Complete implements Completion.
func (c *cleanup) Complete(*Op) { c.pool.Put(c) }

// copyOf is a release as or after op. It copies what it needs: op belongs to its caller again soon.
func (rs *rounds) copyOf(op *Op) *cleanup {
	c, _ := rs.cleanups.Get().(*cleanup)
	if c == nil {
		c = &cleanup{pool: &rs.cleanups}
		c.Done = c
	}
	c.Ends = cleansUp
	c.key = append(c.key[:0], op.Key...)
	c.Kind, c.Key, c.Token, c.Tail, c.TTL, c.Timeout, c.Absent = Release, c.key, op.Token, op.Tail, 0, op.Timeout, op.Absent
	c.OfSet, c.Stay, c.Shared = op.OfSet, op.Stay, op.Shared
	c.Reserve() // it is idle
	c.begin(op.start)
	return c
}

// cleanUp queues the release to undo an acquire, on all nodes, unless no node can have the key. Each node gets it
// after the acquire.
func (rs *rounds) cleanUp(op *Op) {
	if rs.nodes.quorum.Nodes()&^op.Absent != 0 {
		var l list
		l.push(&rs.copyOf(op).Op)
		_, _ = rs.queue.push(l, nil) // cleanups are never refused
	}
}
