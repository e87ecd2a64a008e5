package group

import (
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/waiters"
)

// lines is the callers of this process that wait for locks, a line for each key. The first
// of a line alone asks the nodes, as its Contender says (contend.go). A lock that is
// released passes on to the first without asking them, for as long as lease.pass allows
// (pass.go).
//
// A caller that meets no line pays one atomic load.
//
// No waiter is forgotten: each that leaves, on any path, wakes the one that is the first
// then. Where a lock is passed on past it, the sentry does, in time for the first to renew
// its place and to ask the nodes.
type lines struct {
	group   *Group
	known   atomic.Int64 // lines
	waiting atomic.Int64 // callers in all lines
	passed  atomic.Uint64
	seed    maphash.Seed
	shards  [shards]shard
	pool    sync.Pool     // of *waiter
	left    chan struct{} // holds one: a waiter has left since the client began to close
	pushes  pushes
	sentry  sentry
}

const shards = 32

const never = time.Duration(1<<63 - 1)

// shard is some of the lines. Its lock is taken before a lease's, and after the driver
// lock.
type shard struct {
	mu    sync.Mutex
	table waiters.Table[*waiter]
	_     [32]byte // keeps two locks off one cache line
}

type (
	line      = waiters.Line[*waiter]
	departure = waiters.Departure
)

// waiter is one that waits. The shard's lock protects its fields but for wake and timer.
type waiter struct {
	waiters.Waiter[*waiter]
	key    string
	ttl    time.Duration
	call   *engine.Call
	handed Handle        // the lock, once it was passed on to it; it may be asking the nodes then
	won    bool          // the nodes have granted it the lock
	wake   chan struct{} // holds one
	timer  *time.Timer
	rings  time.Duration // when the timer does, at the latest; never: it is not set
}

func (l *lines) init(g *Group) {
	l.group, l.seed, l.left = g, maphash.MakeSeed(), make(chan struct{}, 1)
	var names []uint64
	for _, addr := range g.cfg.Conn.Addresses {
		names = append(names, waiters.Hash(addr.String()))
	}
	for i := range l.shards {
		l.shards[i].table.Names, l.shards[i].table.Outside = names, l
	}
	l.pushes.init()
	l.sentry.init(l)
}

// close waits until all waiters have left, after group.ending was closed, or a hook has kept
// one for CloseTimeout. Then it leaves all queues: no waiter enters one any more.
func (l *lines) close() {
	timer := time.NewTimer(l.group.cfg.CloseTimeout)
	defer timer.Stop()
	for late := false; l.waiting.Load() > 0 && !late; {
		select {
		case <-l.left:
		case <-timer.C:
			late = true
		}
	}
	l.sentry.close()
}

// InLine is how many callers wait, and how many locks were passed on.
func (g *Group) InLine() (waiting int, passed uint64) {
	return int(g.lines.waiting.Load()), g.lines.passed.Load()
}

func (l *lines) shardOf(key []byte) *shard {
	return &l.shards[maphash.Bytes(l.seed, key)%shards]
}

func (l *lines) shard(key string) *shard {
	return &l.shards[maphash.String(l.seed, key)%shards]
}

// isTaken reports whether callers wait for key that must not be overtaken.
func (l *lines) isTaken(key string) bool {
	if l.waiting.Load() == 0 {
		return false
	}
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.IsTaken(key)
}

// ask has w ask the nodes at its next turn, if it is the first, and reports whether it will.
func (l *lines) ask(w *waiter) bool {
	s := l.shard(w.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.Ask(&w.Waiter)
}

// isContended reports whether others want the lock for key, as far as is known.
func (l *lines) isContended(key string) bool {
	if l.known.Load() == 0 {
		return false
	}
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.IsContended(key)
}

// join puts a new waiter at the end of the line for key. The nodes of denied have just
// refused its caller the lock. With whole it wants several keys as one lock.
func (l *lines) join(key string, c *engine.Call, denied uint64, whole bool) *waiter {
	w, _ := l.pool.Get().(*waiter)
	if w == nil {
		w = &waiter{wake: make(chan struct{}, 1), timer: time.NewTimer(time.Hour), rings: never}
		w.Owner = w
	}
	w.key, w.ttl, w.call, w.Whole = key, c.TTL, c, whole
	l.stand(w, denied)
	return w
}

// stand puts w, which is in no line, at the end of its own.
func (l *lines) stand(w *waiter, denied uint64) {
	s := l.shard(w.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	l.waiting.Add(1)
	if s.table.Stand(w.key, &w.Waiter, denied) {
		l.known.Add(1)
		l.sentry.start()
	}
}

// leave takes w out of its line. What was passed on to it meanwhile, and it did not take,
// is released, and so passes on.
func (l *lines) leave(w *waiter) {
	s := l.shard(w.key)
	for s.mu.Lock(); w.Leaves(); s.mu.Lock() { // a release may have sent its call along in the last moment
		s.mu.Unlock()
		l.abandon(w)
	}
	handed, waited := w.handed, w.Line() != nil
	left := l.change(s.table.Remove(&w.Waiter))
	s.mu.Unlock()
	l.depart(w.key, left)
	if waited { // only now: close leaves the queues, and ends the connections, when none waits
		l.waiting.Add(-1)
	}
	if w.won && !handed.hold.IsZero() { // both: the nodes have lost keys. None may have the one that was passed on
		handed.hold.ShowToken()
	}
	handed.ReleaseAsync()
	if isClosed(l.group.ending) {
		select {
		case l.left <- struct{}{}:
		default:
		}
	}
	w.key, w.call, w.handed, w.won = "", nil, Handle{}, false
	select {
	case <-w.wake:
	default:
	}
	l.pool.Put(w)
}

// change does what is due behind a change of a line, under the shard's lock. The caller
// gives depart what it returns, once it has unlocked that.
func (l *lines) change(due waiters.Due[*waiter]) departure {
	if due.Wake != nil {
		due.Wake.Owner.ring()
	}
	if due.Forgotten {
		l.known.Add(-1)
	}
	return due.Departure
}

// ring wakes w.
func (w *waiter) ring() {
	select {
	case w.wake <- struct{}{}:
	default: // it will look
	}
}

// turn says what w does next: it takes the lock that was passed on to it, acts for its
// line, or parks.
func (l *lines) turn(w *waiter) (t waiters.Turn, handed Handle) {
	s := l.shard(w.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if t = s.table.Turn(&w.Waiter); t.Takes {
		handed, w.handed = w.handed, Handle{}
	}
	return t, handed
}

// Around is what the contender of a line looks at.
func (l *lines) Around(c *waiters.Contender) waiters.Surroundings {
	return waiters.Surroundings{
		Now:    l.group.clock.Now(),
		Usable: l.pushes.usable.Load(),
		Slow:   l.pushes.slow.Load(),
		Pause:  l.group.pause(c.Attempts() + 1),
		Jitter: rand.N(waiters.MaxJitter),
		Ask:    l.askAfter(),
	}
}

// Bounds of how long a process waits for a lock without an attempt, and of how many such
// attempts a client makes in a second.
const (
	leastAsk = 800 * time.Millisecond
	mostAsk  = 1050 * time.Millisecond
	maxAsks  = 250

	// askTick is what the instants of a client with many lines are rounded to, so that its
	// attempts travel together.
	askTick  = 100 * time.Millisecond
	manyAsks = 32
)

// askAfter is how long after an attempt the next is made, although nothing has woken its
// waiter. It is random, so that processes which were refused together do not ask together.
func (l *lines) askAfter() time.Duration {
	after, n := leastAsk+rand.N(mostAsk-leastAsk), l.known.Load()
	if n > maxAsks {
		after = after * time.Duration(n) / maxAsks
	}
	if n > manyAsks {
		after -= (l.group.clock.Now() + after) % askTick
	}
	return after
}

// Now completes waiters.Outside.
func (l *lines) Now() time.Duration { return l.group.clock.Now() }

// park waits until w is woken, until it or its caller is to act, or until the caller gives up.
func (l *lines) park(w *waiter, done <-chan struct{}, next time.Duration) {
	act := min(w.Look, next) // only w itself writes Look
	pause := min(act-l.group.clock.Now(), time.Hour)
	if pause <= 0 {
		return
	}
	if w.rings > act { // else it is left alone: most waiters are woken long before
		w.timer.Reset(pause)
		w.rings = act
	}
	select {
	case <-w.wake:
	case <-w.timer.C:
		w.rings = never
	case <-done:
	case <-l.group.ending:
	}
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
