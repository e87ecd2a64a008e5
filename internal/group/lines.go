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
// latest when the holder that is known will have lost the lock (waiter.look). Each that
// leaves, on any path, wakes the one that is the first then. The sentry wakes a first that
// has to renew its place.
type lines struct {
	group   *Group
	known   atomic.Int64 // lines
	waiting atomic.Int64 // callers in all lines
	passed  atomic.Uint64
	seed    maphash.Seed
	names   []uint64 // of the nodes, hashed
	shards  [shards]shard
	pool    sync.Pool // of *waiter
	pushes  pushes
	sentry  sentry
}

const (
	shards = 32
	// knownFor is how long a key counts as contended once none waits for it, and maxKnown
	// for how many keys of a shard.
	knownFor = 3 * time.Second
	maxKnown = 1024
)

// shard is some of the lines. Its lock is taken before a lease's, and after the driver
// lock.
type shard struct {
	mu    sync.Mutex
	table waiters.Table[*waiter]
	_     [32]byte // keeps two locks off one cache line
}

type line = waiters.Line[*waiter]

// waiter is one that waits. The shard's lock protects its fields but for wake and timer.
type waiter struct {
	waiters.Waiter[*waiter]
	key    string
	ttl    time.Duration
	call   *engine.Call
	look   time.Duration // when it looks by itself
	handed Handle        // the lock, once it was passed on to it; it may be asking the nodes then
	won    bool          // the nodes have granted it the lock
	acts   *line         // for which it acts; the line is Busy
	asks   bool          // call is under way, sent along with the release of the last holder
	parked bool
	wake   chan struct{} // holds one
	timer  *time.Timer
	rings  time.Duration // when the timer does, at the latest; never: it is not set
}

func (l *lines) init(g *Group) {
	l.group, l.seed = g, maphash.MakeSeed()
	for _, addr := range g.cfg.Conn.Addresses {
		l.names = append(l.names, waiters.Hash(addr.String()))
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
	line := s.table.Find(key)
	return line != nil && (line.Len() > 0 || l.group.clock.Now() < line.Known)
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
	w.look = never
	line, isNew := s.table.Join(w.key, &w.Waiter)
	if l.waiting.Add(1); isNew {
		line.Contender.Init(w.key, l.names)
		line.Passes = maxPasses - 1
		l.known.Add(1)
		l.sentry.start()
		if denied != 0 { // else it may be old news to the first, which watches the key since
			line.Contender.Refused(l.surroundings(line), denied)
		}
	}
}

// leave takes w out of its line. What was passed on to it meanwhile, and it did not take,
// is released, and so passes on.
func (l *lines) leave(w *waiter) {
	s := l.shard(w.key)
	s.mu.Lock()
	for w.parked = false; w.acts != nil; { // a release may have sent its call along in the last moment
		s.mu.Unlock()
		l.abandon(w)
		s.mu.Lock()
	}
	handed := w.handed
	left := l.remove(s, w)
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

// remove takes w out of its line, if it is in one, and wakes the next. The caller gives
// depart what it returns, once it has unlocked s.
func (l *lines) remove(s *shard, w *waiter) departure {
	line := w.Line()
	if line == nil {
		return departure{}
	}
	l.waiting.Add(-1)
	if next := s.table.Leave(&w.Waiter); next != nil {
		next.Owner.ring()
	}
	return l.settle(s, line)
}

// settle forgets a line that none waits in, or remembers for a while that its key is
// contended.
func (l *lines) settle(s *shard, line *line) departure {
	if line.Len() > 0 || line.Busy {
		return departure{}
	}
	now := l.group.clock.Now()
	if line.Known == 0 && s.table.Len() <= maxKnown {
		line.Known = now + knownFor
	}
	forget := now >= line.Known
	left := departure{}
	if forget || line.Contender.IsInTheWay() {
		left.node, left.first, left.is = line.Contender.Depart()
	}
	if forget && s.table.Settle(line, now) {
		l.known.Add(-1)
	}
	return left
}

// ring wakes w.
func (w *waiter) ring() {
	select {
	case w.wake <- struct{}{}:
	default: // it will look
	}
}

// turn is what a waiter does next: it takes the lock that was passed on to it, acts for its
// line, or parks.
type turn struct {
	handed Handle
	acts   bool
	step   waiters.Step
}

func (l *lines) turn(w *waiter) (t turn) {
	s := l.shard(w.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	w.parked = false
	line := w.Line()
	switch {
	case w.asks:
		return turn{acts: true, step: waiters.Step{Action: waiters.Attempt}}
	case line == nil:
		t.handed, w.handed = w.handed, Handle{}
		return t
	}
	now := l.group.clock.Now()
	switch {
	case !w.IsFirst() && line.Until > now:
		w.look = line.Until + rand.N(maxJitter)
	case !w.IsFirst() || line.Busy: // the one that leaves, or acts, wakes the first
		w.look = never
	default:
		line.Known = 0
		if t.step = line.Contender.Next(l.surroundings(line)); t.step.Action != waiters.Pause {
			line.Busy, w.acts, t.acts = true, line, true
			return t
		}
		w.look = t.step.Until
	}
	w.parked = true
	return t
}

// maxJitter spreads what several waiters do at an instant that they all know.
const maxJitter = 5 * time.Millisecond

// surroundings is what the contender of a line looks at.
func (l *lines) surroundings(line *line) *waiters.Surroundings {
	return &waiters.Surroundings{
		Now:    l.group.clock.Now(),
		Usable: l.pushes.usable.Load(),
		Held:   line.Until,
		Pause:  l.group.pause(line.Contender.Attempts() + 1),
		Jitter: rand.N(maxJitter),
	}
}

// park waits until w is woken, until it should look, or until its caller gives up.
func (l *lines) park(w *waiter, done <-chan struct{}) {
	pause := min(w.look-l.group.clock.Now(), time.Hour) // only w itself writes look
	if pause <= 0 {
		return
	}
	if w.rings > w.look { // else it is left alone: most waiters are woken long before
		w.timer.Reset(pause)
		w.rings = w.look
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
