package conn

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/quorum"
)

// driver sends the calls of many goroutines and reads their answers. It is one goroutine at a time, the holder of its
// lock: a caller sending its own call and what others have queued, the reader, or the timer.
//
// No call is left waiting. A caller queues its call and then tries the lock; a holder gives the lock up and then looks
// at the queue. So one of the two sees it. While the window is closed an answer opens it, and its reader looks at the
// queue.
type driver struct {
	fleet    *Fleet
	majority int
	calls    sync.Pool // of *call

	queueing   sync.Mutex // taken after mu
	queue      []*call    // to be sent
	queued     atomic.Int64
	open       atomic.Bool  // what is queued may be sent
	collecting atomic.Bool  // the reader lets callers come back, and sends what they have queued then
	callers    atomic.Int64 // of Do
	entering   atomic.Int64 // goroutines waiting for mu
	alone      atomic.Bool  // the holder of mu waits in the kernel, or is about to

	mu        sync.Mutex    // the fleet's lock; the fields below belong to its holder
	armed     bool          // the reader is woken by the next arrival
	armedLate bool          // likewise, except from early nodes
	ticking   bool          // the timer is set
	timer     *time.Timer   // reads what no caller waits for
	rounds    []*round      // to be used again
	last      *round        // sent last
	pending   int           // rounds with a call of too few answers
	sated     int           // rounds under way of which no caller waits for more
	woken     int           // callers, in this sweep
	trip      time.Duration // a majority's, when little else goes on; 0 is unknown
	keeping   time.Duration // how long lone callers have waited in the kernel since the last parked one
	closed    bool
	cameUp    chan struct{} // closed when a node comes up

	routines sync.WaitGroup
}

const (
	maxRound  = 1024     // calls in one batch
	keepRound = 64 << 10 // bytes of its buffer, to be used again

	// lateAfter is when replies are read that no caller waits for.
	lateAfter = 5 * time.Millisecond
	// aloneFor bounds how long a caller waits in the kernel for its own replies, and keptFor how long lone callers do,
	// one after another, before one parks: only then others run on a single processor.
	aloneFor, keptFor = 5 * time.Millisecond, 2 * time.Millisecond

	// On a fast network one round under way is best: what is called meanwhile is the next. On a slow one another is
	// allowed for each roundPer of the round trip.
	roundPer, maxRounds = 500 * time.Microsecond, 32
	probeCalls          = 8 // a round of at most so many measures the round trip, if it is alone
)

func (d *driver) start(cfg Config) error {
	d.mu.Lock() // a quick dialer needs the fleet
	defer d.mu.Unlock()
	d.cameUp = make(chan struct{})
	up := cfg.OnUp
	cfg.OnUp = func(node int) {
		close(d.cameUp)
		d.cameUp = make(chan struct{})
		if up != nil {
			up(node)
		}
	}
	f, err := New(cfg, &d.mu)
	if err != nil {
		return err
	}
	d.fleet, d.majority = f, quorum.Size(f.Len())
	d.timer = time.AfterFunc(time.Hour, d.tick)
	d.open.Store(true)
	d.armed = true
	f.Arm(false)
	d.routines.Go(d.read)
	return nil
}

func (d *driver) close() {
	d.lock()
	if !d.closed {
		close(d.cameUp)
	}
	d.closed = true
	d.fleet.Close()
	d.timer.Stop()
	d.unlock()
	d.fleet.Drain()
	d.routines.Wait()
}

// submit queues a call, and sends it unless another goroutine is about to.
func (d *driver) submit(c *call) {
	d.callers.Add(1)
	d.queueing.Lock()
	if len(d.queue) == cap(d.queue) { // so it is not longer than twice the callers
		d.queue = slices.DeleteFunc(d.queue, d.drop)
	}
	d.queue = append(d.queue, c)
	d.queued.Store(int64(len(d.queue)))
	d.queueing.Unlock()
	if !d.collecting.Load() {
		d.drive(c)
	}
}

// drop frees a queued call if its caller has gone.
func (d *driver) drop(c *call) bool {
	gone := c.gone.Load()
	if gone {
		d.free(c)
	}
	return gone
}

// leave ends a Do.
func (d *driver) leave(c *call) {
	c.gone.Store(true)
	d.callers.Add(-1)
	d.free(c)
}

// wants notes that a caller waits until so many have come, unless they have.
func (d *driver) wants(c *call, enough int) (come bool) {
	d.lock()
	defer d.unlock()
	if int(c.come.Load()) >= enough {
		return true
	}
	c.enough, c.wants = int32(enough), true
	if c.round.wanting == 0 {
		d.sated--
	}
	c.round.wanting++
	return false
}

// drive sends what is queued. c is the caller's own call, or nil: one that is alone reads its answers.
func (d *driver) drive(c *call) {
	for d.queued.Load() > 0 && d.open.Load() {
		if !d.mu.TryLock() {
			if d.alone.Load() {
				d.fleet.Wake()
			}
			return
		}
		d.flush()
		if c != nil && !d.readAlone(c) {
			return
		}
		c = nil
		d.giveUp()
	}
}

// flush sends what is queued while the window is open.
func (d *driver) flush() {
	for d.queued.Load() > 0 && d.open.Load() {
		r := d.newRound()
		d.queueing.Lock()
		n := min(len(d.queue), maxRound)
		r.calls = append(r.calls[:0], d.queue[:n]...)
		d.queue = slices.Delete(d.queue, 0, n)
		d.queued.Store(int64(len(d.queue)))
		d.queueing.Unlock()
		r.calls = slices.DeleteFunc(r.calls, d.drop)
		if len(r.calls) == 0 {
			d.rounds = append(d.rounds, r)
			continue
		}
		d.send(r)
	}
}

func (d *driver) send(r *round) {
	r.Buf = r.Buf[:0]
	for _, c := range r.calls {
		c.round = r
		r.Buf = append(r.Buf, c.buf...)
	}
	r.Replies = len(r.calls)
	r.pending, r.wanting, r.heard, r.alone = r.Replies, r.Replies, false, d.pending == 0
	r.sent = d.fleet.now()
	d.pending++
	d.setWindow()
	d.last = r
	if all := d.fleet.Len(); all-d.fleet.Away().Len() < d.majority {
		d.fleet.Want()
	}
	d.fleet.Send(&r.Batch)
}

// leaves counts a round as no longer pending: a majority of the nodes has answered all of it, or failed.
func (d *driver) leaves(r *round) {
	if trip := d.fleet.now().Sub(r.sent); r.alone && r.Replies <= probeCalls {
		if d.trip == 0 || trip < d.trip {
			d.trip = trip
		} else {
			d.trip += (trip - d.trip) / 32
		}
	}
	d.pending--
	d.setWindow()
}

func (d *driver) setWindow() {
	open := d.pending < 1+min(int(d.trip/roundPer), maxRounds-1)
	if open != d.open.Load() {
		d.open.Store(open)
	}
}

func (d *driver) newRound() *round {
	if k := len(d.rounds) - 1; k >= 0 {
		r := d.rounds[k]
		d.rounds = d.rounds[:k]
		return r
	}
	r := &round{d: d}
	r.Owner = r
	return r
}

// readAlone has the only caller wait in the kernel, for a while, or until another comes. Who is ready to run does so
// first. It returns false if another goroutine has the lock.
func (d *driver) readAlone(c *call) (isDriver bool) {
	if d.callers.Load() != 1 || c.round == nil || !c.wants || !d.fleet.CanBlock() {
		return true
	}
	if d.keeping >= keptFor {
		d.keeping = 0
		return true
	}
	d.mu.Unlock()
	runtime.Gosched()
	if !d.mu.TryLock() {
		return false
	}
	d.alone.Store(true)
	defer d.alone.Store(false)
	began := d.fleet.now()
	for left := aloneFor; left > 0 && c.wants && d.callers.Load() == 1 && d.entering.Load() == 0 && d.fleet.CanBlock(); {
		d.fleet.Sweep(left)
		spent := d.fleet.now().Sub(began)
		left = aloneFor - spent
	}
	d.keeping += d.fleet.now().Sub(began)
	return true
}

// lock takes the lock. A caller waiting in the kernel is woken.
func (d *driver) lock() {
	if d.mu.TryLock() {
		return
	}
	d.entering.Add(1)
	if d.alone.Load() {
		d.fleet.Wake()
	}
	d.mu.Lock()
	d.entering.Add(-1)
}

// unlock sends what is queued, and gives the lock up.
func (d *driver) unlock() {
	d.flush()
	d.giveUp()
	d.drive(nil)
}

// giveUp gives the lock up. While a caller waits arrivals wake the reader, and so they do while nothing is owed: then they
// are the ends of connections. The answers of early nodes to the only round with callers that wait decide nothing, and
// wake no reader. What no caller waits for the timer reads.
func (d *driver) giveUp() {
	if under := d.fleet.under; !d.closed {
		switch r := d.last; {
		case d.armed, under <= d.sated && (under > 0 || d.ticking):
		case under == d.sated+1 && r != nil && r.wanting == r.Replies && r.wanting > 0 && !r.heard:
			if !d.armedLate {
				d.armedLate = true
				d.fleet.Arm(true)
			}
		default:
			d.armed = true
			d.fleet.Arm(false)
		}
		if !d.ticking && under > 0 {
			d.ticking = true
			d.timer.Reset(lateAfter)
		}
	}
	d.mu.Unlock()
}

// read is the goroutine that reads for others. It lets those it has woken run, and then sends what they ask next in one
// batch: were each to send alone, the first would leave the others behind by a round trip.
func (d *driver) read() {
	for d.fleet.Wait() {
		d.lock()
		d.armed, d.armedLate, d.woken = false, false, 0
		d.fleet.Sweep(0)
		if woken := int64(d.woken); woken > 1 {
			d.collecting.Store(true)
			d.mu.Unlock()
			for i := range 8 {
				before := d.queued.Load()
				runtime.Gosched()
				if now := d.queued.Load(); now >= woken || i > 0 && now == before {
					break
				}
			}
			d.collecting.Store(false)
			d.lock()
		}
		d.unlock()
	}
}

// tick reads what is late, and ends silent connections.
func (d *driver) tick() {
	d.lock()
	d.ticking = false
	if !d.closed {
		d.fleet.Sweep(0)
		d.fleet.Check()
	}
	d.unlock()
}
