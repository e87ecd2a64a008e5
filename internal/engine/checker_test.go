package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/quorum"
)

// checker watches a world from outside, on true time, and keeps the first thing
// that is wrong.
type checker struct {
	world *world
	kind  string
	text  string
	keys  int // that sessions use
	locks []*lock
	last  [maxKeys]*lock // the newest that was acquired

	counts

	sent [8][maxKeys][]asked // by client, in the order of submission
}

// counts is how often what is rare happened.
type counts struct{ renewals, discards int }

func (c *counts) add(o *counts) {
	c.renewals += o.renewals
	c.discards += o.discards
}

// asked is one operation on a key, as submitted.
type asked struct {
	kind Kind
	lock int
}

// lock is one attempt and all that becomes of it.
type lock struct {
	number    int
	client    *client
	key       int
	ttl       time.Duration
	validity  *validity       // once it was acquired
	absent    quorum.Set      // nodes that have no key of it
	extends   []time.Duration // when they were submitted
	holding   bool
	until     time.Duration // true time at which its holder stops believing in it
	over      bool          // its holder wants it gone
	forgotten bool          // its holder never sent a release, or may not have
	loose     bool          // when its release was submitted is not known
	ends      int           // place of its release in what its client has submitted, from 1 on; or 0
	kept      bool          // a renewal of it may have been sent

	granted [maxMasters]time.Duration // when a master set it, or 0
	gone    [maxMasters]time.Duration // when it ends there
	renewed [maxMasters]time.Duration // when a master last extended it
	deleted [maxMasters]time.Duration // when a master deleted it
	excused [maxMasters]bool          // a release may be missing there
	refused [maxMasters]time.Duration // when a master last refused something of it, for a reason of that lock
}

// acquiredLocks is how many attempts have become locks.
func (c *checker) acquiredLocks() (n int) {
	for _, l := range c.locks {
		if l.until > 0 {
			n++
		}
	}
	return n
}

func (c *checker) failed() bool { return c.kind != "" }

func (c *checker) fail(kind, text string) {
	if c.kind == "" {
		c.kind, c.text = kind, text
		c.world.note("FAIL "+kind, 0, 0, 0)
	}
}

func (c *checker) failf(kind, format string, args ...any) { c.fail(kind, fmt.Sprintf(format, args...)) }

func (c *checker) newLock(cl *client, key int, ttl time.Duration) *lock {
	l := &lock{number: len(c.locks) + 1, client: cl, key: key, ttl: ttl, validity: &validity{}}
	c.locks = append(c.locks, l)
	return l
}

func (c *checker) lock(number int) *lock {
	if number < 1 || number > len(c.locks) {
		c.failf("wire", "no lock has number %d", number)
		return &lock{client: c.world.clients[0]}
	}
	return c.locks[number-1]
}

// granted: a master set the key.
func (c *checker) granted(m *master, cmd *sentCommand, expires int64) {
	l := c.lock(cmd.locks[0])
	if l.granted[m.index] != 0 {
		c.failf("order", "lock %d was set twice on master %d", l.number, m.index)
	}
	l.granted[m.index], l.gone[m.index] = c.world.now(), m.end(expires)
	c.bounded(m, l)
}

// extended: a master gave the key a new TTL.
func (c *checker) extended(m *master, number int, expires int64) {
	l := c.lock(number)
	l.renewed[m.index], l.gone[m.index] = c.world.now(), m.end(expires)
	c.bounded(m, l)
	c.supported(l)
}

// bounded checks that no key outlives the TTL that was asked for it.
func (c *checker) bounded(m *master, l *lock) {
	most := l.ttl
	if c.world.rules.shrinks {
		most = max(most, 200*time.Millisecond)
	}
	if l.gone[m.index] > c.world.now()+most*102/100+2*time.Millisecond {
		c.failf("ttl", "lock %d lives until %v on master %d, and its TTL is %v", l.number, l.gone[m.index], m.index, l.ttl)
	}
}

func (c *checker) released(m *master, number int) {
	l := c.lock(number)
	l.deleted[m.index], l.gone[m.index] = c.world.now(), c.world.now()
	c.supported(l)
}

// votes checks that an operation which is reported as won was won.
func (c *checker) votes(cl *client, l *lock, op *Op, asked time.Duration) {
	c.failures(cl, l, op, asked)
	if op.Tally.Verdict() == quorum.Pending || op.Tally.Verdict() == 0 {
		c.failf("vote", "lock %d was completed without a verdict", l.number)
	}
	if op.Err != nil {
		return
	}
	won := false
	for _, at := range l.instants(op.Kind, asked) {
		won = won || cl.isQuorum(func(link *link) bool {
			m := link.master.index
			switch did := l.did(op.Kind)[m]; {
			case did < asked || did == 0:
			case op.Kind == Release, len(l.extends) > 1, op.Kind == Extend && l.over, did <= at && at < l.gone[m]:
				return true
			}
			return false
		})
	}
	if !won {
		c.failf("vote", "lock %d: kind %d won without a quorum of %d nodes", l.number, op.Kind, cl.fleet.Len())
	}
}

// did is when each master last did what an operation of that kind asks for.
func (l *lock) did(kind Kind) *[maxMasters]time.Duration {
	switch kind {
	case Acquire:
		return &l.granted
	case Extend:
		return &l.renewed
	}
	return &l.deleted
}

// instants are the moments in a round at which a quorum can first have been there.
func (l *lock) instants(kind Kind, asked time.Duration) (at []time.Duration) {
	for _, did := range l.did(kind) {
		if did != 0 && did >= asked {
			at = append(at, did)
		}
	}
	return at
}

// acquired is called when a client has learnt that it holds the lock.
func (c *checker) acquired(l *lock) {
	l.believe()
	c.alone(l)
	c.last[l.key] = l
	l.holding = true
	c.supported(l)
}

// prolonged is called when a client has learnt that its lock is extended.
func (c *checker) prolonged(l *lock) {
	if c.last[l.key] != l {
		c.failf("extend", "lock %d was extended, and lock %d was acquired since", l.number, c.last[l.key].number)
	}
	c.alone(l)
	c.supported(l)
}

// supported checks that a quorum of nodes keeps the key for as long as its holder
// believes in it.
func (c *checker) supported(l *lock) {
	if !l.holding || l.until <= c.world.now() || c.world.rules.overstays {
		return
	}
	if !l.client.isQuorum(func(link *link) bool { m := link.master.index; return l.granted[m] != 0 && l.gone[m] >= l.until }) {
		c.failf("ttl", "lock %d is believed in until %v, and no quorum of %d nodes keeps it for as long", l.number, l.until, l.client.fleet.Len())
	}
}

// alone checks that no two holders believe in the same.
func (c *checker) alone(l *lock) {
	now := c.world.now()
	for _, other := range c.locks {
		if other != l && other.key == l.key && other.holding && other.until > now {
			c.failf("overlap", "locks %d and %d are both held on key %d", other.number, l.number, l.key)
		}
	}
	if c.world.rules.overstays {
		l.until += 2 * l.ttl
	}
}

// tickLate is how late a tick of the watchdog may be: callers that read alone may
// delay it, one of each client, since in a world they return in the reverse of the
// order in which they began.
const tickLate = maxTick + 4*aloneFor + time.Millisecond

// atRest checks an engine between two events, when no goroutine has its driver lock.
func (c *checker) atRest(cl *client) {
	e := cl.engine
	cl.watch()
	for _, l := range cl.fleet.links {
		l.notice()
	}
	if cl.busy > 0 || c.failed() || cl.frozen() {
		return
	}
	// What a session goes on to do may take a while, and others come back in it.
	for again := true; again; {
		again = false
		for _, s := range cl.sessions {
			again = s.poll() || again
		}
	}
	if n := int(e.depth.Load()) + e.callbacks.ops.n; n != cl.pending {
		c.failf("once", "client %d: %d operations under way, depth says %d", cl.index, cl.pending, n)
	}
	size := e.queue.size.Load()
	if waits := size > 0 && e.window.isOpen.Load(); !waits || cl.left == 0 {
		cl.left = c.world.now()
	}
	switch {
	case cl.fleet.reading: // the reader will see to all of it
	case c.world.now()-cl.left > tickLate+collectFor:
		c.failf("stuck", "client %d: %d operations are left behind an open window", cl.index, size)
	case cl.collects(): // the watchdog sees to it in time
	case e.callbacks.waiting.Load() > 0:
		c.failf("stuck", "client %d: callbacks wait, and their goroutine is not woken", cl.index)
	case size > 0 && e.window.isOpen.Load():
		c.failf("stuck", "client %d: %d operations wait behind an open window", cl.index, size)
	case size > 0 && e.unanswered == 0:
		c.failf("stuck", "client %d: the window is shut, and nothing is out", cl.index)
	case cl.dead:
	case e.undecided > 0 && !e.armed:
		c.failf("stuck", "client %d: %d rounds undecided, and none reads", cl.index, e.undecided)
	case e.unanswered > 0 && !e.watchdog.awake:
		c.failf("stuck", "client %d: %d batches out, the watchdog sleeps", cl.index, e.unanswered)
	}
	cl.watch()
	for _, s := range cl.sessions {
		if s.pending {
			c.answered(cl, s.asked)
		}
	}
}

// isQuorum reports whether the nodes of which a thing is true are a quorum.
func (c *client) isQuorum(is func(*link) bool) bool {
	var nodes quorum.Set
	for i, link := range c.fleet.links {
		if is(link) {
			nodes |= 1 << i
		}
	}
	return c.engine.quorum.IsQuorum(nodes)
}

// answerFor is how long an operation may wait while a quorum of nodes answers
// promptly: for two batches of the time before, each until its timeout, and for one
// round trip.
const answerFor = 2*(maxTimeout+tickLate) + 30*time.Millisecond

// answered checks how long an operation has been waiting.
func (c *checker) answered(cl *client, asked time.Duration) {
	now := c.world.now()
	if now-asked <= answerFor || cl.dead || now-cl.woken <= answerFor {
		return
	}
	if cl.isQuorum(func(l *link) bool { return now-l.trouble > answerFor }) {
		c.failf("stuck", "client %d: an operation waits for %v, and a quorum answers", cl.index, now-asked)
	}
}

// failures checks that each failed vote has its own cause: a node that fails
// all, or has refused this key. What others ask is no cause.
func (c *checker) failures(cl *client, l *lock, op *Op, asked time.Duration) {
	for _, f := range op.Failures {
		link := cl.fleet.links[f.Node]
		switch {
		case f.Err == errTimeout, errors.Is(f.Err, conn.ErrQuarantined), !link.up, link.changed >= asked:
		case f.Err == errOvertaken && op.Kind == Acquire:
		case l.refused[link.master.index] >= asked:
		default:
			c.failf("foreign", "lock %d: kind %d failed on node %d, which had no reason: %v", l.number, op.Kind, f.Node, f.Err)
		}
	}
}

// atEnd checks the rest when nothing happens any more.
func (c *checker) atEnd() {
	for _, cl := range c.world.clients {
		c.clean(cl)
	}
	for _, m := range c.world.masters {
		for key := range c.keys {
			h := m.get(key)
			if h.lock == 0 {
				continue
			}
			if l := c.lock(h.lock); l.over && !l.forgotten && !l.excused[m.index] {
				c.failf("orphan", "lock %d is still on master %d, and no holder wants it", l.number, m.index)
			}
		}
	}
}

// clean checks that an engine holds nothing back.
func (c *checker) clean(cl *client) {
	e := cl.engine
	if n := cl.pending; n != 0 {
		c.failf("once", "client %d: %d operations never came back", cl.index, n)
	}
	if !cl.dead {
		if e.watchdog.awake || cl.ticking {
			c.failf("leak", "client %d: the watchdog is awake", cl.index)
		}
		cl.dead = true
		cl.close(time.Minute)
	}
	if e.depth.Load() != 0 || e.queue.size.Load() != 0 || e.undecided != 0 || e.unanswered != 0 || e.window.inside != 0 {
		c.failf("leak", "client %d: depth %d, queued %d, undecided %d, unanswered %d, inside %d", cl.index,
			e.depth.Load(), e.queue.size.Load(), e.undecided, e.unanswered, e.window.inside)
	}
	if len(cl.fleet.flights) != 0 {
		c.failf("leak", "client %d: %d batches were never done", cl.index, len(cl.fleet.flights))
	}
	for _, list := range [][]*batch{e.free, e.inFlight} {
		seen := map[*batch]bool{}
		for _, b := range list {
			if seen[b] || b.owed != 0 || b.undecided != 0 {
				c.failf("leak", "client %d: a batch is twice in a list, or not done", cl.index)
			}
			seen[b] = true
		}
	}
	var op Op
	op.Kind, op.Key, op.TTL, op.Done = Acquire, []byte("key-0"), longestHeld, noCompletion{}
	if err := e.Submit(&op); err != ErrClosed {
		c.failf("once", "client %d: Submit after Close: %v", cl.index, err)
	}
}
