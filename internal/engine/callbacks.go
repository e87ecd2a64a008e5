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
	// beyond that are not reported.
	maxVotes = 64 << 10
	// slowCall is how long a callback holds up the others. After that another
	// goroutine calls them.
	slowCall = 20 * time.Millisecond
	// collectFor is how long submitters leave it to another goroutine to drive, so
	// that what they submit travels in one batch: see Engine.submitted.
	collectFor  = 200 * time.Microsecond
	collectEach = 2 * time.Microsecond // more for each of those that are to submit
	// maxReadOwn is for how many operations the goroutine of callbacks reads the replies: with more,
	// it is better that another goroutine reads while this one calls.
	maxReadOwn = 128
)

func collectTime(n int) time.Duration { return collectFor + time.Duration(n)*collectEach }

// callbacks is the user code that is to be called: completions of operations,
// votes, and news of nodes.
//
// A separate goroutine calls it, one at a time and without a lock, so that a
// callback may do anything: submit, make blocking calls, ask for statistics, close
// the client, block or panic. A panic is recovered and reported. A callback that
// blocks costs its goroutine: the watchdog notices and starts another; the old one
// ends when its callback returns. A number distinguishes the two.
type callbacks struct {
	waiting atomic.Int64 // not yet begun
	wake    func()       // has the goroutine make the calls; must not block
	woken   chan struct{}
	closed  chan struct{}

	mu       sync.Mutex
	ops      list
	votes    []vote
	reported int // of votes
	news     []func()
	caller   uint64        // the number of the goroutine that may call
	begun    uint64        // calls, by all goroutines
	calling  bool          // one is under way
	seen     uint64        // begun, when the watchdog last saw a change
	since    time.Duration // when that was
}

func (c *callbacks) init() {
	c.woken, c.closed = make(chan struct{}, 1), make(chan struct{})
	c.wake = func() {
		select {
		case c.woken <- struct{}{}:
		default: // it is awake
		}
	}
}

// vote is a vote to be reported.
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
	c.ops.append(*ops)
	c.waiting.Add(int64(ops.n))
	c.mu.Unlock()
}

func (c *callbacks) vote(v vote) {
	c.mu.Lock()
	if len(c.votes)-c.reported < maxVotes {
		c.votes = append(c.votes, v)
		c.waiting.Add(1)
	}
	c.mu.Unlock()
}

// Notify has f called as callbacks are. The driver lock is held.
func (e *Engine) Notify(f func()) {
	c := &e.callbacks
	c.mu.Lock()
	c.news = append(c.news, f)
	c.waiting.Add(1)
	c.mu.Unlock()
	e.watchdog.see(maxTimeout)
}

// Announce is Notify for several functions, and for callers without the driver lock.
func (e *Engine) Announce(news []func()) {
	e.driver.Lock()
	e.turn(func() {
		for _, f := range news {
			e.Notify(f)
		}
	})
}

// next begins the next call of a caller, and ends its last one. Votes and news
// come before the completions that follow from them. It returns false if nothing
// waits, or if the caller was replaced.
func (c *callbacks) next(caller uint64, j *job) (ok bool) {
	c.mu.Lock()
	if c.caller == caller {
		if ok = c.take(j); ok {
			c.begun++
			c.waiting.Add(-1)
		}
		c.calling = ok
	}
	c.mu.Unlock()
	return ok
}

// job is one call: op, or news, or vote.
type job struct {
	op   *Op
	news func()
	vote vote
}

// take takes the next call. c.mu is held.
func (c *callbacks) take(j *job) bool {
	j.op, j.news = nil, nil
	switch {
	case c.reported < len(c.votes):
		j.vote = c.votes[c.reported]
		if c.reported++; 2*c.reported >= len(c.votes) { // amortized: each is moved once at most
			left := copy(c.votes, c.votes[c.reported:])
			clear(c.votes[left:])
			c.votes, c.reported = c.votes[:left], 0
		}
	case len(c.news) > 0:
		j.news = c.news[0]
		c.news[0] = nil
		c.news = c.news[1:]
	case c.ops.first != nil:
		j.op = c.ops.pop()
		j.op.advance(idle) // it is its user's again
	default:
		return false
	}
	return true
}

func (c *callbacks) isCaller(number uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.caller == number
}

// idle reports whether nothing waits and nothing is under way.
func (c *callbacks) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting.Load() == 0 && !c.calling
}

// slow looks after the caller at each tick of the watchdog. It returns true if a call
// has lasted for too long, and the number of the goroutine that goes on.
func (c *callbacks) slow(now time.Duration) (slow bool, number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.calling || c.begun != c.seen {
		c.seen, c.since = c.begun, now
		return false, 0
	}
	if now-c.since < slowCall {
		return false, 0
	}
	return true, c.replace()
}

// replace gives the next goroutine its number. c.mu is held.
func (c *callbacks) replace() uint64 {
	c.caller++
	c.calling = false
	return c.caller
}

// makeCalls is the goroutine of callbacks.
func (e *Engine) makeCalls(number uint64) {
	defer e.endCaller(number)
	c := &e.callbacks
	for e.callTurn(number) {
		select {
		case <-c.woken:
		case <-c.closed:
			e.callTurn(number)
			return
		}
	}
}

// endCaller counts the goroutine as ended, unless another has taken its place.
func (e *Engine) endCaller(number uint64) {
	if e.callbacks.isCaller(number) {
		e.routines.Done()
	}
}

// callTurn makes the calls that wait, as caller number, and sends what they have
// submitted. It returns false if the caller was replaced meanwhile.
//
// If as many operations are under way then as were completed, and not too many, the callbacks
// have submitted again and no other caller waits. So this goroutine reads the replies, as a lone
// caller does: the Call that stands for it has no operation, and is done when there are calls
// to make.
func (e *Engine) callTurn(number uint64) bool {
	completed := 0
	if e.callbacks.waiting.Load() > 0 {
		for !e.callUntilPanic(number, &completed) { // the next look ends the call that has panicked
		}
	}
	if !e.callbacks.isCaller(number) {
		return false
	}
	e.collectOps.Store(0)
	if completed == 0 || completed > maxReadOwn {
		e.drive(nil)
		return true
	}
	self := Call{done: e.callbacks.woken, along: int64(completed) - 1}
	self.start, self.Timeout = e.clock.Now(), aloneFor
	e.drive(&self)
	return true
}

// callUntilPanic makes calls until none waits or the caller was replaced, and
// returns true; or until one panics, and returns false. A callback, or the report of
// its panic, may end this goroutine (runtime.Goexit): then another takes its place.
// completed counts the operations among them.
func (e *Engine) callUntilPanic(number uint64, completed *int) (done bool) {
	returns := false
	defer func() {
		if !returns {
			e.replaceCaller(number)
		}
	}()
	defer func() {
		if v := recover(); v != nil {
			e.report(v)
			returns = true
		}
	}()
	var j job
	for e.callbacks.next(number, &j) {
		switch {
		case j.op != nil:
			*completed++
			j.op.Done.Complete(j.op)
		case j.news != nil:
			j.news()
		default:
			e.onVote(j.vote.node, j.vote.kind, j.vote.outcome, j.vote.err)
		}
	}
	returns = true
	return true
}

// report reports a panic of user code. What it calls is user code too.
func (e *Engine) report(v any) {
	defer func() { _ = recover() }()
	if e.onPanic != nil {
		e.onPanic(v, debug.Stack())
	}
}

// lookAfterCaller starts another goroutine where a callback lasts for too long. The
// watchdog calls it without the driver lock.
func (e *Engine) lookAfterCaller() {
	if slow, number := e.callbacks.slow(e.clock.Now()); slow {
		go e.makeCalls(number)
	}
}

// replaceCaller starts a goroutine in the place of one that ends.
func (e *Engine) replaceCaller(number uint64) {
	c := &e.callbacks
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.caller == number {
		go e.makeCalls(c.replace())
	}
}
