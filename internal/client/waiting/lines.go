package waiting

import (
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/internal/rules/contention"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/internal/wire/token"
	"github.com/redlock-go/redlock/quorum"
)

// Config configures Lines.
type Config struct {
	engine.Env
	Engine       *engine.Engine
	Retry        Retry
	CloseTimeout time.Duration
	NoHandOver   bool

	// Release releases a lock passed on to a caller after it has left.
	Release func(holding.Hold)
}

// Lines is the waiting callers of this process, a line for each key.
type Lines struct {
	cfg      Config
	known    atomic.Int64 // lines
	waiting  atomic.Int64 // callers in all lines
	passed   atomic.Uint64
	names    []uint64 // of the nodes, hashed
	seed     maphash.Seed
	shards   [shards]shard
	pool     sync.Pool     // of *Waiter
	left     chan struct{} // holds one: a waiter has left since the client began to close
	tracking tracking
	sentry   sentry
	survey   survey // the sentry's
	counts   counts
	choices  choices
	grants   grants
}

const (
	shards    = 32
	maxPasses = holding.MaxPasses

	// maxJitter spreads the acts of several waiters at an instant known to all.
	maxJitter = 5 * time.Millisecond
)

// shard is some of the lines. Its lock is taken before a lease's, and after the driver lock.
type shard struct {
	mu    sync.Mutex
	lines map[string]*line
	_     [48]byte // keeps two locks off one cache line
}

// New returns lines without waiters.
func New(cfg Config) *Lines {
	l := &Lines{cfg: cfg, seed: maphash.MakeSeed(), left: make(chan struct{}, 1)}
	for _, name := range cfg.Nodes {
		l.names = append(l.names, contention.Hash(name))
	}
	for i := range l.shards {
		l.shards[i].lines = make(map[string]*line)
	}
	l.tracking.init(l)
	l.sentry.lines, l.sentry.late, l.survey.lines = l, quorum.Everything, l
	return l
}

// Close waits until all waiters have left, once Config.Ending is closed, or until a hook has kept one for
// CloseTimeout. No waiter enters a queue any more.
func (l *Lines) Close() {
	timer := time.NewTimer(l.cfg.CloseTimeout)
	defer timer.Stop()
	for late := false; l.waiting.Load() > 0 && !late; {
		select {
		case <-l.left:
		case <-timer.C:
			late = true
		}
	}
}

// hasLeft shows Close that a waiter has left.
func (l *Lines) hasLeft() {
	if engine.IsClosed(l.cfg.Ending) {
		select {
		case l.left <- struct{}{}:
		default:
		}
	}
}

// LeaveQueues gives up all places in queues: other processes would wait for this one. Turn is not called any more.
func (l *Lines) LeaveQueues() {
	l.each(func(_ *shard, line *line) departure { return departureOf(line) })
}

// lock locks the shard of key and returns it.
func (l *Lines) lock(key string) *shard { return l.lockOf(l.hash(key)) }

func (l *Lines) lockOf(hash uint64) *shard {
	s := &l.shards[hash%shards]
	s.mu.Lock()
	return s
}

func (l *Lines) hash(key string) uint64 { return maphash.String(l.seed, key) }

// each calls f for each line, under its shard's lock, and leaves the queues returned by f.
func (l *Lines) each(f func(*shard, *line) departure) {
	for i := range l.shards {
		var all []departure
		s := &l.shards[i]
		s.mu.Lock()
		for _, line := range s.lines {
			if d := f(s, line); d.nodes != 0 {
				all = append(all, d)
			}
		}
		s.mu.Unlock()
		for _, d := range all {
			l.tracking.leave(d)
		}
	}
}

// CanBeWoken reports whether some node can push the release of a lock.
func (l *Lines) CanBeWoken() bool { return l.tracking.usable.Load() != 0 }

// Known reports whether there are lines, with or without waiters.
func (l *Lines) Known() bool { return l.known.Load() > 0 }

// Look reports whether callers wait for key, and whether the lock was seen to have a holder then.
func (l *Lines) Look(key string) (awaited, taken bool) {
	if l.waiting.Load() == 0 {
		return false, false
	}
	s := l.lock(key)
	defer s.mu.Unlock()
	line := s.lines[key]
	awaited = line != nil && line.len > 0
	return awaited, awaited && line.isTaken(l.cfg.Clock.Now())
}

// IsContended reports whether others want the lock for key, as far as is known.
func (l *Lines) IsContended(key string) bool {
	if l.known.Load() == 0 {
		return false
	}
	s := l.lock(key)
	defer s.mu.Unlock()
	line := s.lines[key]
	return line != nil && (line.len > 0 || l.cfg.Clock.Now() < line.known)
}

// Join puts a new waiter at the end of the line for key, after an attempt of its caller. A caller for several keys as one
// lock has one bell for all its places.
func (l *Lines) Join(key string, c *engine.Call, last Ended, b *Bell) *Waiter {
	w := l.waiter(key, b)
	w.call = c
	l.waiting.Add(1) // until it leaves: also a lock passed on to it is waited for at the end
	w.stand(last)
	return w
}

// waiter returns a waiter in no line.
func (l *Lines) waiter(key string, b *Bell) *Waiter {
	if b != nil {
		return &Waiter{lines: l, key: key, bell: b, whole: true}
	}
	w, _ := l.pool.Get().(*Waiter)
	if w == nil {
		w = &Waiter{lines: l, bell: NewBell()}
	}
	w.key = key
	return w
}

// lineFor returns the line for key, and whether it is new.
func (l *Lines) lineFor(s *shard, key string) (_ *line, isNew bool) {
	if line := s.lines[key]; line != nil {
		return line, false
	}
	l.known.Add(1)
	made := &line{key: key, passes: maxPasses - 1, unknown: l.grants.of(l.hash(key)).Load()}
	made.contender.Init(key, l.names)
	s.lines[key] = made
	return made, true
}

// settle drops a line without waiters, or remembers for a while that its key is contended. The caller leaves the
// returned queue once the shard is unlocked.
func (l *Lines) settle(s *shard, line *line) (d departure) {
	if line.first != nil || line.busy {
		return d
	}
	now := l.cfg.Clock.Now()
	if line.known == 0 && len(s.lines) <= maxKnown {
		line.known = now.Add(knownFor)
	}
	drop := now >= line.known
	if drop || line.contender.BlocksOthers() {
		d = departureOf(line)
	}
	if drop {
		delete(s.lines, line.key)
		l.known.Add(-1)
	}
	return d
}

// Pass passes the lock of h on to the first waiter, and reports whether it did. Then h holds nothing. Once the client
// begins to close nothing passes: the waiters are about to leave, and cannot give a lock back.
func (l *Lines) Pass(h holding.Hold, held *holding.State) bool {
	if l.waiting.Load() == 0 || l.cfg.NoHandOver || engine.IsClosed(l.cfg.Ending) {
		return false
	}
	s := l.lock(held.Key)
	d, ok := l.pass(s, h, held)
	s.mu.Unlock()
	l.tracking.leave(d)
	return ok
}

func (l *Lines) pass(s *shard, h holding.Hold, held *holding.State) (d departure, ok bool) {
	line, now := s.lines[held.Key], l.cfg.Clock.Now()
	if line == nil {
		return d, false
	}
	w := line.mayPass(held.Serial, now)
	if w == nil {
		return d, false
	}
	if p := w.place; p != nil {
		until, ok := p.pass(h, now)
		if ok {
			l.passed.Add(1)
			line.passed(w, now, until)
		}
		return d, ok
	}
	next, until, ok := h.Pass(now, w.call.TTL)
	if !ok {
		return d, false
	}
	l.passed.Add(1)
	w.handed = next
	line.passed(w, now, until)
	d = l.settle(s, line)
	w.bell.ring()
	return d, true
}

// Along returns the acquire of the first waiter for a lock, if it may ask for it at the moment of its release: with a
// new token and block, to be sent along with the release. It is nil without such a waiter.
func (l *Lines) Along(held *holding.State, t token.Token, b fencing.Block) *engine.Call {
	if engine.IsClosed(l.cfg.Ending) || !l.CanBeWoken() {
		return nil
	}
	s := l.lock(held.Key)
	defer s.mu.Unlock()
	line := s.lines[held.Key]
	if line == nil {
		return nil
	}
	w := line.along(held.Serial, l.cfg.Clock.Now())
	if w == nil {
		return nil
	}
	w.call.Token, w.call.Block = t, b
	w.call.Proposal.Exceed(b)
	w.bell.ring()
	return w.call
}

// Freed notes that the lock of a grant of key, or of an unknown one (0), was given back or lost.
func (l *Lines) Freed(key string, serial uint64) {
	if l.known.Load() == 0 {
		return
	}
	s := l.lock(key)
	defer s.mu.Unlock()
	if line := s.lines[key]; line != nil {
		line.freed(serial, l.cfg.Clock.Now())
	}
}

// KeyChanged notes that nodes may have another value at a key than before, or at all keys if key is nil. If own, this
// process has deleted the key there: nodes push the changes of others alone (NOLOOP), and so no push shows it. The
// driver lock is held. A push is a hint: a forged one has a waiter look in vain.
func (l *Lines) KeyChanged(nodes quorum.Set, key []byte, own bool) {
	if own && l.known.Load() == 0 {
		return
	}
	for node := range nodes.All() {
		if own {
			l.changed(node, key, true)
			continue
		}
		l.tracking.heard[node].Add(1)
		if key == nil {
			l.sentry.flush(node)
			continue
		}
		l.changed(node, key, true)
		if key, isTicket := command.CutTicket(key, l.tracking.id); isTicket {
			l.changed(node, key, false)
		}
	}
}

// changed notes that a node has changed the key, or the process's ticket beside it.
func (l *Lines) changed(node int, key []byte, ofLock bool) {
	s := &l.shards[maphash.Bytes(l.seed, key)%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if line := s.lines[string(key)]; line != nil && line.pushed(node, ofLock) {
		l.sentry.vacate(line.key)
	}
}

// Bounds on how long a process waits without an attempt, and on how many such attempts a client makes in a second.
const (
	leastAsk = 800 * time.Millisecond
	mostAsk  = 1050 * time.Millisecond
	maxAsks  = 250

	// askTick rounds the instants of a client with many lines, so its attempts travel together.
	askTick  = 100 * time.Millisecond
	manyAsks = 32
)

// around is the surroundings of the contender of a line.
func (l *Lines) around(line *line) contention.Surroundings {
	now, n := l.cfg.Clock.Now(), l.known.Load()
	ask := leastAsk + rand.N(mostAsk-leastAsk) // random: processes refused together do not ask together
	if n > maxAsks {
		ask = ask * time.Duration(n) / maxAsks
	}
	if n > manyAsks {
		ask = now.Add(ask).Truncate(askTick).Sub(now)
	}
	return contention.Surroundings{
		Now: now, Held: line.held, Usable: l.tracking.usable.Load(), Slow: l.tracking.slow.Load(),
		Pause: l.cfg.Retry.pause(line.contender.Attempts()+1, rand.N), Jitter: rand.N(maxJitter), Ask: ask,
	}
}
