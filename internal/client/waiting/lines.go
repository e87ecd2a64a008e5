package waiting

import (
	"hash/maphash"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/base/gate"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/internal/rules/contention"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/rules/renewal"
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

// Lines is the waiting callers of this process: a desk for each key.
type Lines struct {
	cfg      Config
	known    atomic.Int64 // desks
	left     atomic.Bool  // the process has left its queues, for good
	owed     atomic.Int64 // places not taken back by nodes
	waiting  *gate.Gate   // callers
	places   atomic.Int64 // of callers, in all lines
	passed   atomic.Uint64
	names    []uint64 // of the nodes, hashed
	seed     maphash.Seed
	shards   [shards]shard
	next     atomic.Int64 // when Turn is called again, at the latest
	pool     sync.Pool    // of *Demand
	tracking tracking
	sentry   sentry
	counts   counts
	grants   grants
	turns    turns
}

const (
	shards    = 32
	maxPasses = holding.MaxPasses

	// maxJitter spreads the acts of several waiters at an instant known to all.
	maxJitter = 5 * time.Millisecond
)

// shard is some of the desks. Its lock is taken after the driver lock, and before a demand's. It is larger than a cache
// line: no two locks are on one.
type shard struct {
	mu    sync.Mutex
	desks map[string]*desk
	most  int // desks since there were none
	due   renewal.Schedule[*desk]
	owed  []leftPlace // places not taken back by nodes
	asks  bool        // a question was queued, and is to be sent
}

// manyDesks is how many a shard may have had for its map to be used again. A map never shrinks.
const manyDesks = 64

// remove takes out a desk. With the last one goes the memory of a crowd.
func (s *shard) remove(d *desk) {
	s.due.Remove(d)
	s.most = max(s.most, len(s.desks))
	delete(s.desks, d.key)
	if len(s.desks) == 0 && s.most > manyDesks {
		s.desks, s.most, s.due = make(map[string]*desk), 0, renewal.Schedule[*desk]{}
	}
}

// New returns lines without waiters.
func New(cfg Config) *Lines {
	l := &Lines{cfg: cfg, seed: maphash.MakeSeed(), waiting: gate.New()}
	for _, name := range cfg.Nodes {
		l.names = append(l.names, contention.Hash(name))
	}
	for i := range l.shards {
		l.shards[i].desks = make(map[string]*desk)
	}
	l.next.Store(int64(clock.Never))
	l.tracking.lines, l.tracking.id = l, strconv.FormatUint(rand.Uint64()|1<<63, 16)
	l.sentry.lines, l.sentry.late = l, quorum.Everything
	return l
}

// Close waits until all callers have left, once Config.Ending is closed, for CloseTimeout at most. No process enters a queue
// any more.
func (l *Lines) Close() {
	late := make(chan struct{})
	defer time.AfterFunc(l.cfg.CloseTimeout, func() { close(late) }).Stop()
	l.waiting.Shut()
	l.waiting.Wait(late, nil)
}

// LeaveQueues gives up all places in queues: other processes would wait for this one. None is entered any more. Turn is not
// called any more.
func (l *Lines) LeaveQueues() {
	l.left.Store(true)
	l.each(func(d *desk) { d.leave(d.Depart()) })
}

// lock locks the shard of key and returns it.
func (l *Lines) lock(key string) *shard {
	s := &l.shards[l.hash(key)%shards]
	s.mu.Lock()
	return s
}

func (l *Lines) hash(key string) uint64 { return maphash.String(l.seed, key) }

// unlock gives up the lock of a shard. What its desks ask of nodes is sent, and they are called in time.
func (l *Lines) unlock(s *shard) {
	asks := s.asks
	l.unlockDriven(s)
	if asks {
		l.cfg.Engine.SendQueries()
	}
}

// unlockDriven is unlock for the holder of the driver lock, to send what was queued before it rests.
func (l *Lines) unlockDriven(s *shard) {
	next := s.next()
	s.asks = false
	s.mu.Unlock()
	if int64(next) < l.next.Load() {
		l.cfg.Ring()
	}
}

// next is when the next desk of the shard is due, or the next place to be taken back.
func (s *shard) next() (at clock.Instant) {
	at = clock.Never
	if s.due.Len() > 0 {
		_, at = s.due.First()
	}
	for _, x := range s.owed {
		at = min(at, x.due)
	}
	return at
}

// each calls f for each desk, under its shard's lock.
func (l *Lines) each(f func(*desk)) {
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		for _, d := range s.desks {
			f(d)
		}
		l.unlock(s)
	}
}

// at calls f for the desk of key, if it has one, under its shard's lock.
func (l *Lines) at(key string, f func(*desk)) {
	s := l.lock(key)
	defer l.unlock(s)
	if d := s.desks[key]; d != nil {
		f(d)
	}
}

// CanBeWoken reports whether some node can push the release of a lock.
func (l *Lines) CanBeWoken() bool { return l.tracking.usable.Load() != 0 }

// HasDesks reports whether some key has a desk, with or without callers.
func (l *Lines) HasDesks() bool { return l.known.Load() > 0 }

// Awaits reports whether callers wait for key, and whether the lock was seen to have a holder then.
func (l *Lines) Awaits(key string) (awaited, taken bool) {
	if l.places.Load() == 0 {
		return false, false
	}
	l.at(key, func(d *desk) {
		awaited = d.first != nil
		now := l.cfg.Clock.Now()
		taken = awaited && (now < d.held || now < d.denied && d.isIdle())
	})
	return awaited, taken
}

// IsContended reports whether others want the lock for key, as far as is known, or may want it and are owed a look.
func (l *Lines) IsContended(key string) (is bool) {
	if l.known.Load() > 0 {
		l.at(key, func(d *desk) { is = d.first != nil || l.cfg.Clock.Now() < d.known })
	}
	return is || l.turns.owing(l.hash(key), l.cfg.Clock) != nil
}

// over reports whether the client closes, or a caller gives up. Its context is not asked: others wait for its caller.
func (l *Lines) over(limit engine.Limit) Reason {
	var now clock.Instant
	if limit.At != 0 {
		now = l.cfg.Clock.Now() // a part of what a hand-over costs
	}
	switch {
	case engine.IsClosed(l.cfg.Ending):
		return Closed
	case limit.IsOver(now):
		return GivesUp
	}
	return none
}

// deskFor returns the desk for key, and whether it is new.
func (l *Lines) deskFor(s *shard, key string) (_ *desk, isNew bool) {
	if d := s.desks[key]; d != nil {
		return d, false
	}
	l.known.Add(1)
	hash := l.hash(key)
	d := &desk{lines: l, shard: s, key: key, passes: maxPasses - 1, order: order{unknown: l.grants.of(hash).Load()}}
	d.Init(key)
	s.desks[key] = d
	if o, hold := l.turns.take(hash, l.cfg.Clock); o != nothing {
		d.brief = true
		d.owe(o, hold)
	}
	return d, true
}

// Pass passes the lock of h on to the first caller, and reports whether it did. Then h holds nothing. Once the client
// begins to close nothing passes: the callers are about to leave, and cannot give a lock back.
func (l *Lines) Pass(h holding.Hold, held *holding.State) (ok bool) {
	if l.places.Load() == 0 || l.cfg.NoHandOver || engine.IsClosed(l.cfg.Ending) {
		return false
	}
	l.at(held.Key, func(d *desk) { ok = d.pass(h, held) })
	if ok {
		l.passed.Add(1)
	}
	return ok
}

// Along returns the acquire of the first caller for a lock, if it may ask for it at the moment of its release: with a
// new token and block, to be sent along with the release. It is nil without such a caller.
func (l *Lines) Along(held *holding.State, t token.Token, b fencing.Block) (c *engine.Call) {
	if engine.IsClosed(l.cfg.Ending) || !l.CanBeWoken() {
		return nil
	}
	l.at(held.Key, func(d *desk) {
		c = d.along(held.Serial, l.cfg.Clock.Now())
		if c != nil {
			c.Token, c.Block = t, b
			c.Proposal.Exceed(b)
		}
	})
	return c
}

// Freed notes that the lock of a grant of key, or of an unknown one (0), was given back or lost.
func (l *Lines) Freed(key string, serial uint64) {
	if l.known.Load() > 0 {
		l.at(key, func(d *desk) { d.freed(serial, l.cfg.Clock.Now()) })
	}
}

// KeyChanged notes that nodes may have another value at a key than before, or at all keys if key is nil. If own, this
// process has deleted the key there: nodes push the changes of others alone (NOLOOP), and so no push shows it. The
// driver lock is held. A push is a hint: a forged one has a caller ask in vain.
func (l *Lines) KeyChanged(nodes quorum.Set, key []byte, own bool) {
	if own && l.known.Load() == 0 {
		return
	}
	if own {
		l.changed(nodes, key, command.OfLock)
		return
	}
	for node := range nodes.All() {
		l.tracking.heard[node].Add(1)
		if key == nil {
			l.sentry.note(&l.sentry.flushed, node)
			continue
		}
		l.changed(quorum.Only(node), key, command.OfLock)
		if beside, what := command.CutWatched(key, l.tracking.id); len(beside) < len(key) {
			l.changed(quorum.Only(node), beside, what)
		}
	}
}

// changed notes that nodes have changed the key, or what is beside it.
func (l *Lines) changed(nodes quorum.Set, key []byte, what command.Watched) {
	s := &l.shards[maphash.Bytes(l.seed, key)%shards]
	s.mu.Lock()
	defer l.unlockDriven(s)
	d := s.desks[string(key)]
	if d == nil {
		return
	}
	matters := false
	for node := range nodes.All() {
		switch {
		case what == command.OfLock:
			matters = d.Pushed(node) || matters
		case what == command.OfQueue:
			matters = d.queueChanged(node) || matters
		case d.Rung(l.cfg.Clock.Now(), node):
			d.passes, matters = min(d.passes, d.callers()), true
		}
	}
	if matters {
		d.advance()
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

// around is the surroundings of the contender of a desk.
func (l *Lines) around(d *desk, now clock.Instant) contention.Surroundings {
	n := l.known.Load()
	ask := leastAsk + rand.N(mostAsk-leastAsk) // random: processes denied together do not ask together
	if n > maxAsks {
		ask = ask * time.Duration(n) / maxAsks
	}
	if n > manyAsks {
		ask = now.Add(ask).Truncate(askTick).Sub(now)
	}
	return contention.Surroundings{
		Now: now, Names: l.names, Held: d.held, Shared: d.first != nil && d.first.shared, Set: d.first != nil && d.first.of.all, Usable: l.tracking.usable.Load(), Slow: l.tracking.slow.Load(),
		Pause: l.cfg.Retry.pause(d.Vain()+1, rand.N), Jitter: rand.N(maxJitter), Ask: ask,
	}
}
