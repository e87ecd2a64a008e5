package group

import (
	"context"
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/waiters"
)

// lines is the callers of this process that wait for locks, a line for each key. The first of a
// line alone asks the nodes. A lock that is released passes on to the first without
// asking them, for as long as lease.pass allows.
//
// A caller that meets no line pays one atomic load.
//
// No waiter is forgotten: each that becomes the first is woken, or looks by itself at the
// latest when the holder that is known will have lost the lock (waiter.look). Each that
// leaves, on any path, wakes the one that is the first then.
type lines struct {
	group   *Group
	waiting atomic.Int64 // in all lines
	passed  atomic.Uint64
	seed    maphash.Seed
	shards  [shards]shard
	pool    sync.Pool // of *waiter
}

const shards = 32

// shard is some of the lines. Its lock is taken before a lease's.
type shard struct {
	mu    sync.Mutex
	table waiters.Table[*waiter]
	_     [32]byte // keeps two locks off one cache line
}

// waiter is one that waits. The shard's lock protects its fields but for wake and timer.
type waiter struct {
	waiters.Waiter[*waiter]
	key    string
	ttl    time.Duration
	look   time.Duration // when it looks by itself
	handed Handle        // the lock, once it was passed on to it; it may be asking the nodes then
	won    bool          // the nodes have granted it the lock
	wake   chan struct{} // holds one
	timer  *time.Timer
	rings  time.Duration // when the timer does, at the latest; never: it is not set
}

func (l *lines) init(g *Group) { l.group, l.seed = g, maphash.MakeSeed() }

// InLine is how many callers wait, and how many locks were passed on.
func (g *Group) InLine() (waiting int, passed uint64) {
	return int(g.lines.waiting.Load()), g.lines.passed.Load()
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
	return s.table.First(key) != nil
}

// join puts a new waiter at the end of the line for key.
func (l *lines) join(key string, ttl time.Duration) *waiter {
	w, _ := l.pool.Get().(*waiter)
	if w == nil {
		w = &waiter{wake: make(chan struct{}, 1), timer: time.NewTimer(time.Hour), rings: never}
		w.Owner = w
	}
	w.key, w.ttl = key, ttl
	l.stand(w)
	return w
}

// stand puts w, which is in no line, at the end of its own.
func (l *lines) stand(w *waiter) {
	s := l.shard(w.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	w.look = never
	s.table.Join(w.key, &w.Waiter)
	l.waiting.Add(1)
}

// leave takes w out of its line. What was passed on to it meanwhile, and it did not take,
// is released, and so passes on.
func (l *lines) leave(w *waiter) {
	s := l.shard(w.key)
	s.mu.Lock()
	handed := w.handed
	if waits, _ := w.Waits(); waits {
		l.waiting.Add(-1)
		if next := s.table.Leave(&w.Waiter); next != nil {
			next.Owner.ring()
		}
	}
	s.mu.Unlock()
	if w.won && handed.lease != nil { // both: the nodes have lost keys. None may have the one that was passed on
		handed.lease.tell(handed.life)
	}
	handed.ReleaseAsync()
	w.key, w.handed, w.won = "", Handle{}, false
	select {
	case <-w.wake:
	default:
	}
	l.pool.Put(w)
}

// ring wakes w.
func (w *waiter) ring() {
	select {
	case w.wake <- struct{}{}:
	default: // it will look
	}
}

// ask says whether w is to ask the nodes, as the first of its line, or takes the lock
// that was passed on to it.
func (l *lines) ask(w *waiter) (asks bool, h Handle) {
	s := l.shard(w.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	waits, first := w.Waits()
	if !waits {
		h, w.handed = w.handed, Handle{}
		return false, h
	}
	return first && w.Until() <= l.group.clock.Now(), h
}

// asked notes the result of asking: a holder in this process is known to the line.
func (l *lines) asked(w *waiter, h Handle) {
	s := l.shard(w.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if held, ok := h.state(); ok {
		w.won = true
		s.table.SetUntil(w.key, held.until)
	}
}

// park waits until w is woken, until it should look, or until its caller, which has made so
// many attempts, gives up.
func (l *lines) park(w *waiter, attempts int, done <-chan struct{}) {
	now := l.group.clock.Now()
	s := l.shard(w.key)
	s.mu.Lock()
	waits, first := w.Waits()
	pause := time.Hour // one that leaves wakes the next
	switch until := w.Until(); {
	case !waits:
		pause = 0
	case until > now:
		pause = until - now + rand.N(l.group.cfg.Retry.Min+1)/8
	case first:
		pause = l.group.pause(attempts)
	}
	w.look = now + pause
	s.mu.Unlock()
	if pause == 0 {
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

// pass passes the lock of h on to the first that waits for it, and says whether it did.
// The handle is dead then, as one whose lock was released. Once the group is closed it does
// not: the waiters are about to leave, and cannot give it back.
func (l *lines) pass(h Handle, key string) bool {
	if l.waiting.Load() == 0 || l.group.cfg.NoHandOver || isClosed(l.group.ending) {
		return false
	}
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.table.First(key)
	if first == nil {
		return false
	}
	w := first.Owner
	life, until, ok := h.lease.pass(h.life, l.group.clock.Now(), w.ttl)
	if !ok {
		return false
	}
	next := s.table.Leave(first)
	s.table.SetUntil(key, until)
	l.waiting.Add(-1)
	l.passed.Add(1)
	w.handed = Handle{h.group, h.lease, life}
	w.ring()
	if next != nil && next.Owner.look > until {
		next.Owner.ring()
	}
	return true
}

// freed wakes the first that waits for the key of h, because its holder in this process has
// given it back. Where it had been passed on, the first leaves other processes their turn: it
// waits as they do between two attempts. It does so as often as costs the line a ninth of
// its time.
func (l *lines) freed(h Handle, held *state) {
	key := held.key
	if l.waiting.Load() == 0 {
		return
	}
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if first := s.table.First(key); first != nil {
		s.table.SetUntil(key, l.turnOfOthers(h, held))
		first.Owner.ring()
	}
}

// turnOfOthers is until when the line for a lock that was given back leaves it alone.
func (l *lines) turnOfOthers(h Handle, held *state) (until time.Duration) {
	if h.life%maxPasses == 0 {
		return 0
	}
	now, pause := l.group.clock.Now(), l.group.pause(lastAttempt)
	if long := now - began(*held); long/8 < rand.N(pause+1) {
		return 0
	}
	return now + pause
}

// shortened wakes the first that waits for key, if the lock of h ends earlier now than the
// line knows.
func (l *lines) shortened(h Handle, key string) {
	if l.waiting.Load() == 0 {
		return
	}
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.table.First(key)
	if held, ok := h.state(); ok && first != nil && held.until < first.Until() {
		s.table.SetUntil(key, held.until)
		first.Owner.ring()
	}
}

// inLine is Group.attempts for one key: behind the callers that wait for it already.
func (g *Group) inLine(ctx context.Context, w *waiting, c *engine.Call) (h Handle, err error) {
	if w.last = engine.ErrTaken; !g.lines.someWait(w.key) {
		w.attempts++
		if h, err = g.attempt(ctx, c, w.key); err == nil || !w.goesOn(err) {
			return h, g.gaveUp(ctx, w, err)
		}
	}
	done := ctx.Done()
	w.waited = true
	own := g.lines.join(w.key, c.TTL)
	defer g.lines.leave(own)
	// It asks again at once, in case of a release before it was in line; but no attempt is
	// spent on that where they are limited.
	for rested := w.limit == 0 || w.attempts == 0; ; rested = true {
		asks, handed := g.lines.ask(own)
		switch {
		case handed.Remaining() > 0:
			w.ended = handedOver
			return handed, nil
		case handed.lease != nil: // this goroutine has waited long to run again, or a hook has
			handed.ReleaseAsync()
			w.last = engine.ErrExpired
			g.lines.stand(own)
			continue
		case asks && rested:
			w.attempts++
			h, err = g.attempt(ctx, c, w.key)
			g.lines.asked(own, h)
			if err == nil || !w.goesOn(err) {
				return h, g.gaveUp(ctx, w, err)
			}
		}
		g.lines.park(own, w.attempts, done)
		if isClosed(g.ending) {
			return Handle{}, engine.ErrClosed
		}
		if isClosed(done) || ctx.Err() != nil {
			return Handle{}, g.cutOff(ctx, w)
		}
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
