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
// No waiter is forgotten: each that becomes the first is woken, or looks by itself at the
// latest when the holder that is known will have lost the lock (Waiter.Look). Each that
// leaves, on any path, wakes the one that is the first then. The sentry wakes a first that
// has to renew its place.
type lines struct {
	group   *Group
	known   atomic.Int64 // lines
	waiting atomic.Int64 // callers in all lines
	passed  atomic.Uint64
	seed    maphash.Seed
	shards  [shards]shard
	pool    sync.Pool // of *waiter
	pushes  pushes
	sentry  sentry
}

const shards = 32

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
	l.group, l.seed = g, maphash.MakeSeed()
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

// someWait says whether there is a line for key.
func (l *lines) someWait(key string) bool {
	if l.waiting.Load() == 0 {
		return false
	}
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.table.Find(key)
	return line != nil && line.Len() > 0
}

// isContended says whether others want the lock for key, as far as is known.
func (l *lines) isContended(key string) bool {
	if l.known.Load() == 0 {
		return false
	}
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.IsContended(key)
}

// join puts a new waiter at the end of the line for the key of c. The nodes of denied have
// just refused its caller the lock.
func (l *lines) join(key string, c *engine.Call, denied uint64) *waiter {
	w, _ := l.pool.Get().(*waiter)
	if w == nil {
		w = &waiter{wake: make(chan struct{}, 1), timer: time.NewTimer(time.Hour), rings: never}
		w.Owner = w
	}
	w.key, w.ttl, w.call = key, c.TTL, c
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
	handed := w.handed
	if w.Line() != nil {
		l.waiting.Add(-1)
	}
	left := l.change(s.table.Remove(&w.Waiter))
	s.mu.Unlock()
	l.depart(w.key, left)
	if w.won && handed.lease != nil { // both: the nodes have lost keys. None may have the one that was passed on
		handed.lease.tell(handed.life)
	}
	handed.ReleaseAsync()
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
		Pause:  l.group.pause(c.Attempts() + 1),
		Jitter: rand.N(waiters.MaxJitter),
	}
}

// Now, Random and LongPause complete waiters.Outside.
func (l *lines) Now() time.Duration                       { return l.group.clock.Now() }
func (l *lines) Random(below time.Duration) time.Duration { return rand.N(below) }
func (l *lines) LongPause() time.Duration                 { return l.group.pause(lastAttempt) }

// park waits until w is woken, until it should look, or until its caller gives up.
func (l *lines) park(w *waiter, done <-chan struct{}) {
	pause := min(w.Look-l.group.clock.Now(), time.Hour) // only w itself writes Look
	if pause <= 0 {
		return
	}
	if w.rings > w.Look { // else it is left alone: most waiters are woken long before
		w.timer.Reset(pause)
		w.rings = w.Look
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
