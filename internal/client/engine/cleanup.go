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

// cleanups makes and queues them.
type cleanups struct {
	pool  sync.Pool
	queue *queue
	nodes *nodes
}

// of makes the release of op. It copies what it needs: op belongs to its caller again soon.
func (cs *cleanups) of(op *Op) *cleanup {
	c, _ := cs.pool.Get().(*cleanup)
	if c == nil {
		c = &cleanup{pool: &cs.pool}
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
func (cs *cleanups) cleanUp(op *Op) {
	if cs.nodes.quorum.Nodes()&^op.Absent != 0 {
		var l list
		l.push(&cs.of(op).Op)
		_, _ = cs.queue.push(l, nil) // cleanups are never refused
	}
}
