package engine

import (
	"math/bits"
	"time"

	"github.com/redlock-go/redlock/internal/fencing"
	"github.com/redlock-go/redlock/quorum"
)

// fenceCheck is what the checker knows of tokens.
type fenceCheck struct {
	grants    [maxKeys][]tokens
	lastBlock fencing.Block
	well      [8][maxMasters]time.Duration // since when a client could have brought a node back

	fenceCounts
}

// fenceCounts is how much there was of all this.
type fenceCounts struct{ granted, again, second, closed, rejoined, initialized int }

func (c *fenceCounts) add(o *fenceCounts) {
	c.granted += o.granted
	c.again += o.again
	c.second += o.second
	c.closed += o.closed
	c.rejoined += o.rejoined
	c.initialized += o.initialized
}

// tokens are those of an attempt that has succeeded.
type tokens struct {
	fencing.Block
	lock  int
	asked time.Duration // it began
	told  time.Duration // it was known that it had succeeded
}

// tokened checks the tokens of a fenced attempt that has succeeded: those of all attempts
// that had succeeded before it began are smaller, and no other has any of them.
func (c *checker) tokened(l *lock, b fencing.Block, asked time.Duration) {
	if l.client.fence == nil {
		return
	}
	c.fences.granted++
	if b.First == 0 || b.Last-b.First != blockSize-1 {
		c.failf("fence", "lock %d has the tokens %v", l.number, b)
	}
	for _, g := range c.fences.grants[l.key] {
		switch {
		case g.First <= b.Last && b.First <= g.Last:
			c.failf("fence", "locks %d and %d of key %d have tokens %v and %v", g.lock, l.number, l.key, g.Block, b)
		case g.told <= asked && g.Last >= b.First:
			c.failf("fence", "lock %d of key %d had tokens %v before lock %d began, which has %v", g.lock, l.key, g.Block, l.number, b)
		}
	}
	c.fences.grants[l.key] = append(c.fences.grants[l.key], tokens{b, l.number, asked, c.world.now()})
}

// seen is the first token of the latest lock, by its tokens. That of the holder to which it was
// handed is not known to the resource yet.
func (c *fenceCheck) seen() (token uint64) {
	for _, of := range c.grants {
		for _, g := range of {
			token = max(token, g.First)
		}
	}
	return token
}

// attempted is what the last attempt of a user was told, for second.
type attempted struct {
	lock  int
	asked time.Duration
	heard uint64 // nodes, a bit each
}

// second checks an attempt that follows one which was refused: the token is larger than
// all that nodes have told of, and than those that they have recorded for the first.
func (c *checker) second(l *lock, op *Op, before attempted) (now attempted) {
	cl := l.client
	if cl.fence == nil || op.Block.First == 0 {
		return now
	}
	now = attempted{lock: l.number, asked: op.start}
	for node := range cl.fleet.links {
		if o, _ := op.Tally.Outcome(node); o == quorum.Granted {
			now.heard |= 1 << node
		}
	}
	for _, t := range op.Told {
		switch t.Answer.Code {
		case fencing.Held:
			now.heard |= 1 << t.Node
		case fencing.Stale:
			now.heard |= 1 << t.Node
			m := cl.fleet.links[t.Node].master
			r, since := m.fence.raised[l.key], cl.clock.truth(before.asked)
			others := r.last
			if r.lock == before.lock {
				others = r.before
			}
			if before.heard>>t.Node&1 == 1 && others < since && m.fence.floored < since {
				c.failf("second", "lock %d: node %d has refused token %d, and has told of a larger one before", l.number, t.Node, op.Block.First)
			}
			c.fences.second++
		}
	}
	return now
}

// absent checks that an acquire has no key where it is said to have none, and has been
// refused by all that have told so.
func (c *checker) absent(cl *client, l *lock, op *Op) {
	if op.Kind != Acquire || cl.fence == nil {
		return
	}
	for node, link := range cl.fleet.links {
		if op.Absent>>node&1 == 1 && l.granted[link.master.index] != 0 {
			c.failf("absent", "lock %d is said to have no key on node %d, which has granted it", l.number, node)
		}
	}
	for _, t := range op.Told {
		if op.Absent>>t.Node&1 == 0 {
			c.failf("absent", "lock %d: node %d has refused it, and may have the key", l.number, t.Node)
		}
		if o, _ := op.Tally.Outcome(t.Node); o == quorum.Granted || o == quorum.Denied && t.Code == fencing.Amnesia {
			c.failf("vote", "lock %d: node %d said %v, and has voted", l.number, t.Node, t.Code)
		}
	}
}

// backIn is how long a node that has forgotten may have no vote, where a client lives that
// can bring it back: a quarantine, some pauses, and requests that are not answered.
const backIn = longestHeld*102/100 + 3*time.Millisecond + 2*fencing.MaxPause + 4*askTimeout

// votesNow says whether a master has a vote.
func (m *master) votesNow() bool {
	return m.fence.Marker == fencing.Marker{Phase: fencing.Voting, Me: fencing.Me{Fleet: fenceFleet, Run: m.run()}}
}

// nurse checks from time to time that nodes are brought back.
func (c *checker) nurse() {
	w, now, left := c.world, c.world.now(), false
	for _, cl := range w.clients {
		if cl.fence == nil || cl.dead {
			continue
		}
		others := 0
		left = left || cl.fence.forgotten != 0
		for _, l := range cl.fleet.links {
			if l.isWell() && l.master.votesNow() {
				others++
			}
		}
		for node, l := range cl.fleet.links {
			since := &c.fences.well[cl.index][node]
			switch {
			case cl.fence.forgotten>>node&1 == 0, others < cl.fence.readers(), l.master.votesNow(), !l.isWell(), !cl.ran(10 * time.Millisecond), l.master.fence.floored >= now-5*time.Millisecond:
				*since = now
			case now-*since > backIn && bits.OnesCount64(cl.fence.forgotten) > 0:
				c.failf("amnesia", "client %d has not brought node %d back for %v", cl.index, node, now-*since)
			}
		}
	}
	pause := 5 * time.Millisecond
	if w.ending {
		initialize(w)
		pause *= 4
	}
	if now < w.length+200*time.Millisecond || left && now < w.length+medicEvents-100*time.Millisecond {
		w.after(pause, c.nurse)
	}
}

// isWell says whether a link answers, and has answered for a while.
func (l *link) isWell() bool {
	m, now := l.master, l.world.now()
	return l.up && !l.lost && now-max(l.trouble, l.changed) > 10*time.Millisecond && m.moodUntil < now && m.nonsense == 0
}
