package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
)

const (
	// maxEvents bounds the events waiting for hooks. While one blocks, further ones are not reported.
	maxEvents = 64 << 10
	// slowCall is how long a callback holds up the others, from the first tick on that has seen it: 20 ms in all. Then another
	// goroutine calls them.
	slowCall = 20*time.Millisecond - maxTick
	// collectFor is how long submitters leave the driving to another goroutine, so their operations travel in one
	// batch: see driver.submitted.
	collectFor  = 200 * time.Microsecond
	collectEach = 2 * time.Microsecond // more for each expected submitter
	// maxReadOwn is the most operations whose replies the goroutine of callbacks reads: with more, another goroutine
	// had better read while this one calls.
	maxReadOwn = 128
)

func collectTime(n int) time.Duration { return collectFor + time.Duration(n)*collectEach }

// callbacks is the user code to be called: completions of operations, and events.
//
// A separate goroutine calls it, one at a time and without a lock. So a callback may do anything: submit, make
// blocking calls, ask for statistics, close the client, block or panic. A panic is recovered and reported. A blocking
// callback costs its goroutine: the watchdog notices and starts another; the old one ends when its callback returns.
// A number distinguishes the two.
type callbacks struct {
	waiting atomic.Int64 // not yet begun
	wake    func()       // has the goroutine make the calls; must not block
	woken   chan struct{}
	closed  chan struct{}

	// collects is until when the goroutine of callbacks drives for operations without a waiting caller; 0: it does not.
	collects atomic.Int64

	mu       sync.Mutex
	ops      list
	events   []Event
	reported int           // of these
	caller   uint64        // the number of the goroutine allowed to call
	begun    uint64        // calls, by all goroutines
	calling  bool          // one is under way
	seen     uint64        // begun, when the watchdog last saw a change
	since    clock.Instant // when that was
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

// complete adds complete operations.
func (c *callbacks) complete(ops list, now clock.Instant) {
	c.collects.Store(int64(now.Add(collectTime(ops.n))))
	c.mu.Lock()
	c.ops.append(ops)
	c.waiting.Add(int64(ops.n))
	c.mu.Unlock()
}

// add adds an event. There is room for maxEvents; news always have room. None is reported after the end.
func (c *callbacks) add(e Event) {
	if IsClosed(c.closed) {
		return
	}
	_, isNews := e.(News)
	c.mu.Lock()
	if isNews || len(c.events)-c.reported < maxEvents {
		c.events = append(c.events, e)
		c.waiting.Add(1)
	}
	c.mu.Unlock()
}

// next begins the next call of a caller, and ends its last one. Events come before the completions caused by them. It
// returns false if nothing waits, or if the caller was replaced.
func (c *callbacks) next(caller uint64, j *job) (ok bool) {
	c.mu.Lock()
	if c.caller == caller {
		ok = c.take(j)
		if ok {
			c.begun++
			c.waiting.Add(-1)
		}
		c.calling = ok
	}
	c.mu.Unlock()
	return ok
}

// job is one call: the completion of an operation, or the report of an event.
type job struct {
	op    *Op
	event Event
}

// take takes the next call. c.mu is held.
func (c *callbacks) take(j *job) bool {
	switch {
	case c.reported < len(c.events):
		*j = job{event: c.events[c.reported]}
		c.reported++
		if 2*c.reported >= len(c.events) { // amortized: each is moved once at most
			left := copy(c.events, c.events[c.reported:])
			clear(c.events[left:])
			c.events, c.reported = c.events[:left], 0
		}
	case c.ops.first != nil:
		*j = job{op: c.ops.pop()}
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

// slow looks after the caller at each tick of the watchdog. It returns true if a call has lasted too long, and the
// number of the goroutine to go on.
func (c *callbacks) slow(now clock.Instant) (slow bool, number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.calling || c.begun != c.seen {
		c.seen, c.since = c.begun, now
		return false, 0
	}
	if now.Sub(c.since) < slowCall {
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
