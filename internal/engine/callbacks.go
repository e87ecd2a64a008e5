package engine

import (
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/quorum"
)

const (
	// maxVotes bounds the votes that wait for OnVote. While it blocks, votes
	// beyond that are not told.
	maxVotes = 64 << 10
	// slowCall is how long a callback holds up the others. After that another
	// goroutine becomes the reader and calls them.
	slowCall = 20 * time.Millisecond
	// collectFor is how long callbacks keep submitters from driving, so that what
	// they submit travels in one batch.
	collectFor   = 200 * time.Microsecond
	collectCheck = 16 // callbacks between two looks at the clock
)

// callbacks is the user code that is to be called: completions of operations,
// votes, and news of nodes.
//
// The reader goroutine calls it, one at a time and without a lock, so that a
// callback may do anything: submit, ask for statistics, close the client, block
// or panic. A panic is recovered and reported. A callback that blocks costs its
// goroutine: the watchdog notices and starts another reader; the old one ends
// when its callback returns. The number of the reader tells the two apart.
type callbacks struct {
	waiting    atomic.Int64 // not yet begun
	collecting atomic.Bool  // the reader is about to drive; submitters only queue

	mu      sync.Mutex
	ops     list
	votes   []vote
	told    int // of votes
	news    []func()
	reader  uint64        // the number of the goroutine that may call
	begun   uint64        // calls, by all readers
	calling bool          // one is under way
	seen    uint64        // begun, when the watchdog last saw a change
	since   time.Duration // when that was
}

// vote is a vote to be told.
type vote struct {
	node    int
	kind    Kind
	outcome quorum.Outcome
	err     error
}

// complete adds operations that are complete.
func (c *callbacks) complete(ops *list) {
	if ops.first == nil {
		return
	}
	c.mu.Lock()
	if c.ops.first == nil {
		c.ops = *ops
	} else {
		c.ops.last.next = ops.first
		c.ops.last = ops.last
		c.ops.n += ops.n
	}
	c.waiting.Add(int64(ops.n))
	c.mu.Unlock()
}

func (c *callbacks) vote(v vote) {
	c.mu.Lock()
	if len(c.votes) < maxVotes {
		c.votes = append(c.votes, v)
		c.waiting.Add(1)
	}
	c.mu.Unlock()
}

// Tell has f called as callbacks are. The driver lock is held.
func (e *Engine) Tell(f func()) {
	c := &e.callbacks
	c.mu.Lock()
	c.news = append(c.news, f)
	c.waiting.Add(1)
	c.mu.Unlock()
	e.watchdog.see(maxTimeout)
}

// next begins the next call of a reader, and ends its last one. Votes and news
// come before the completions that follow from them. It returns false if nothing
// waits, or if the reader was replaced.
func (c *callbacks) next(reader uint64) (op *Op, v vote, news func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reader != reader {
		return
	}
	c.calling = false
	switch {
	case c.told < len(c.votes):
		v = c.votes[c.told]
		if c.told++; c.told == len(c.votes) {
			clear(c.votes)
			c.votes, c.told = c.votes[:0], 0
		}
	case len(c.news) > 0:
		news = c.news[0]
		c.news[0] = nil
		c.news = c.news[1:]
	case c.ops.first != nil:
		op = c.ops.pop()
	default:
		return
	}
	c.begun++
	c.calling = true
	c.waiting.Add(-1)
	return op, v, news, true
}

func (c *callbacks) isReader(number uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reader == number
}

// idle says whether nothing waits and nothing is under way.
func (c *callbacks) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting.Load() == 0 && !c.calling
}

// stuck looks after the reader at each tick of the watchdog. late says that a call
// has lasted for a tick, replaced that it has lasted too long, and number is that
// of the new reader.
func (c *callbacks) stuck(now time.Duration) (late, replaced bool, number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.calling || c.begun != c.seen {
		c.seen, c.since = c.begun, now
		return
	}
	if now-c.since < slowCall {
		return true, false, 0
	}
	c.reader++
	c.calling = false
	return true, true, c.reader
}

// callBack makes the calls that wait, as reader number. It returns false if the
// reader was replaced meanwhile.
func (e *Engine) callBack(number uint64) bool {
	if e.callbacks.waiting.Load() > 0 {
		for !e.callUntilPanic(number) {
		}
	}
	return e.callbacks.isReader(number)
}

// callUntilPanic makes calls until none waits, and returns true; or until one
// panics, and returns false.
func (e *Engine) callUntilPanic(number uint64) (done bool) {
	defer func() {
		if v := recover(); v != nil {
			e.report(v)
		} else if !done {
			e.replaceReader(number) // the callback has ended this goroutine
		}
	}()
	collecting := e.callbacks.collecting.Load()
	started := e.clock.Now()
	for calls := 1; ; calls++ {
		op, v, news, ok := e.callbacks.next(number)
		switch {
		case !ok:
			return true
		case op != nil:
			op.Done.Complete(op)
		case news != nil:
			news()
		default:
			e.onVote(v.node, v.kind, v.outcome, v.err)
		}
		if collecting && calls%collectCheck == 0 && e.clock.Now()-started > collectFor {
			collecting = false
			e.callbacks.collecting.Store(false)
			e.drive(nil)
		}
	}
}

// report tells of a panic of user code. What it calls is user code too.
func (e *Engine) report(v any) {
	defer func() { _ = recover() }()
	if e.onPanic != nil {
		e.onPanic(v, debug.Stack())
	}
}

// lookAfterReader replaces a reader that a callback has kept for too long. The
// watchdog calls it without the driver lock.
func (e *Engine) lookAfterReader() {
	late, replaced, number := e.callbacks.stuck(e.clock.Now())
	if late {
		e.callbacks.collecting.Store(false)
	}
	if replaced {
		go e.read(number)
	}
	if late {
		e.drive(nil)
	}
}

// replaceReader starts a new reader in the place of one that ends.
func (e *Engine) replaceReader(number uint64) {
	c := &e.callbacks
	c.mu.Lock()
	ours := c.reader == number
	if ours {
		c.reader++
		c.calling = false
	}
	next := c.reader
	c.mu.Unlock()
	if ours {
		c.collecting.Store(false)
		go e.read(next)
	}
}
