package grants

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/wire/token"
)

// MaxValue bounds a client's value, in bytes. With a token before it, it fits into maxStored, the longest value for
// Client.Attach.
const (
	MaxValue  = 232
	maxStored = 256
)

// Config configures a Store.
type Config struct {
	Client *redlock.Client
	// MaxTTL is the Client's MaxTTL: it bounds a TTL with its padding.
	MaxTTL time.Duration
	// NoTTL, if set, grants locks without an expiry, for this long, and keeps them alive.
	NoTTL time.Duration
}

// Store grants locks. It is safe for concurrent use.
type Store struct {
	cfg  Config
	lost context.CancelFunc // ends all locks kept alive
	kept context.Context
	all  Quota // of locks kept alive

	mu     sync.Mutex
	table  map[string]*Grant
	shares map[shareName]*Share
	sweep  int // size of the table at which ended grants are dropped
	queues map[string]*queue
	votes  votes
}

// New returns a Store.
func New(cfg Config) *Store {
	s := &Store{cfg: cfg, table: map[string]*Grant{}, shares: map[shareName]*Share{}, sweep: minSweep, queues: map[string]*queue{}}
	s.kept, s.lost = context.WithCancel(context.Background())
	return s
}

// Close stops keeping locks alive: they end with their TTL.
func (s *Store) Close() { s.lost() }

// Acquire makes one attempt for a client with a value. The error is one of TryAcquire, or ErrTTL.
func (s *Store) Acquire(ctx context.Context, key, value string, ttl time.Duration) (*Grant, error) {
	return s.AcquireWith(ctx, key, value, ttl, Options{})
}

// Options are a client's wishes beside a lock.
type Options struct {
	Wait bool   // in line, until ctx ends
	Keep *Quota // the lock is kept alive until its release, another TTL, or the end of this process
	// Holder is shown to operators beside the lock, as far as there is room for it.
	Holder string
}

// Quota counts and bounds the locks kept alive for one client.
type Quota struct{ used atomic.Int64 }

// maxKept bounds the locks kept alive for one client, maxKeptInAll the locks kept alive for all.
const (
	maxKept      = 1 << 10
	maxKeptInAll = 1 << 14
)

// take reserves one for a client, and reports false if there are too many.
func (s *Store) take(q *Quota) bool {
	isFull := q.used.Add(1) > maxKept
	isFull = s.all.used.Add(1) > maxKeptInAll || isFull
	if isFull {
		s.give(q)
	}
	return !isFull
}

func (s *Store) give(q *Quota) {
	q.used.Add(-1)
	s.all.used.Add(-1)
}

// giveUnless gives back the place of a lock that was not acquired, at the end of a call with *err. A nil q has none.
func (s *Store) giveUnless(err *error, q *Quota) {
	if *err != nil && q != nil {
		s.give(q)
	}
}

// AcquireWith is Acquire with options. The error may also be one of Client.Acquire.
func (s *Store) AcquireWith(ctx context.Context, key, value string, ttl time.Duration, o Options) (g *Grant, err error) {
	stored, tail, holder, err := s.prepare(ctx, value, ttl, &o)
	if err != nil {
		return nil, err
	}
	defer s.giveUnless(&err, o.Keep)
	call := s.cfg.Client.TryAcquire
	if o.Wait {
		call = s.cfg.Client.Acquire
	}
	if o.Wait && s.hasRemains(key) {
		_, _ = s.clear(ctx, key) // else its place is behind a lock that has ended
	}
	lock, began, err := s.attempt(tail, call, key, stored)
	for n := 0; errors.Is(err, redlock.ErrTaken) && ctx.Err() == nil && n < rounds && !s.isHeldHere(key); n++ {
		isFree, unknown := s.clear(ctx, key)
		if unknown != nil {
			err = unknown
		}
		if !isFree {
			break
		}
		lock, began, err = s.attempt(tail, call, key, stored)
	}
	if err != nil {
		return nil, err
	}
	if o.Wait {
		began = time.Now() // the rest was spent in line
	}
	g = &Grant{Lock: lock, store: s, value: value, holder: holder, token: lock.Token()}
	if err = g.last(ctx, ttl, stored, began); err != nil {
		lock.ReleaseAsync()
		return nil, err
	}
	if o.Keep != nil {
		g.alive, g.stop = lock.KeepAlive(s.kept)
		context.AfterFunc(g.alive, func() { s.give(o.Keep) })
	}
	s.put(g)
	return g, nil
}

// prepare returns the TTL to store, ctx with the text stored behind the token of a lock, and the holder in that text. A
// lock to be kept alive has its place in the quota from now on.
func (s *Store) prepare(ctx context.Context, value string, ttl time.Duration, o *Options) (stored time.Duration, tail context.Context, holder string, err error) {
	if stored, err = s.check(ttl); err != nil {
		return 0, nil, "", err
	}
	with := token.WithValue
	if o.Keep != nil {
		with = token.WithKeptValue
		if !s.take(o.Keep) {
			return 0, nil, "", ErrTooMany
		}
	}
	holder = token.HolderFits(o.Holder, value, maxStored)
	return stored, with(ctx, holder, value), holder, nil
}

// attempt asks for a lock, and returns when the granted attempt began.
func (s *Store) attempt(ctx context.Context, call func(context.Context, string, time.Duration) (redlock.Lock, error), key string, stored time.Duration) (lock redlock.Lock, began time.Time, err error) {
	err = again(func() (err error) {
		began = time.Now()
		lock, err = call(ctx, key, stored)
		return err
	})
	return lock, began, err
}

// rounds bounds the attempts after "taken", if nodes show no holder.
const rounds = 3

// isHeldHere reports whether a client of this front end has the lock.
func (s *Store) isHeldHere(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.table[key]
	return g != nil && g.state <= changing && !g.isOver()
}

// hasRemains reports whether the nodes may have a lock after its client's time is over.
func (s *Store) hasRemains(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.table[key]
	return g != nil && !g.isPast() && g.isOver()
}

// clear releases the nodes' remains of a grant whose time is over, and reports whether the key is free. Another front
// end may have extended the grant, so the nodes are asked first.
func (s *Store) clear(ctx context.Context, key string) (isFree bool, err error) {
	g := s.get(key)
	seen, err := s.Look(ctx, key)
	if err != nil || seen.Held {
		return false, err
	}
	s.mu.Lock()
	isOver := g != nil && g.isOver()
	if isOver {
		g.conclude()
	}
	s.mu.Unlock()
	if !isOver {
		return g == nil, nil
	}
	// Some nodes may have had none, and no quorum the rest: the next attempt shows whether the key is free.
	if err = g.Lock.Release(ctx); err != nil && !isGone(err) && !errors.Is(err, redlock.ErrNoQuorum) {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(g)
	return true, nil
}

// AcquireForever is Acquire for a request without an expiry: the lock lives until its release, until it is given an
// expiry, or until this process ends. o.Keep is set.
func (s *Store) AcquireForever(ctx context.Context, key, value string, o Options) (*Grant, error) {
	if s.cfg.NoTTL <= 0 {
		return nil, ErrNoTTL
	}
	return s.AcquireWith(ctx, key, value, s.cfg.NoTTL, o)
}

// State is the lock of a quorum at a key.
type State struct {
	Held  bool
	Value string        // of its client
	token string        // of the lock, value included
	TTL   time.Duration // the client's rest
	stays time.Time     // at the nodes
	Kept  bool          // without an expiry for its client

	isEternal bool // a value without an expiry: no lock
	isShared  bool // several clients share it
}

// ofShared is the value shown for a shared lock. It is no client's value.
const ofShared = "(shared lock)"

// Look asks the nodes for their lock at a key. A minority's key is no lock.
func (s *Store) Look(ctx context.Context, key string) (State, error) {
	var seen redlock.KeyState
	var asked time.Time
	g := s.get(key) // now: by the time of their answer the table may have lost a lock shown by the nodes
	err := again(func() (err error) {
		asked = time.Now()
		if seen, err = s.cfg.Client.Inspect(ctx, key); err == nil && seen.Token() == "" && (seen.Status == redlock.KeyUnknown || s.mayBeHeld(seen)) {
			err = s.noQuorum(seen)
		}
		return err
	})
	stored := seen.Token()
	switch {
	case err == nil && seen.Status == redlock.KeyShared:
		return State{Held: true, Value: ofShared, TTL: max(seen.TTL, time.Millisecond), isShared: true}, nil
	case err != nil || stored == "":
		return State{}, err
	}
	state := State{Held: true, Value: token.ValueIn(stored), token: stored, isEternal: seen.Status == redlock.KeyEternal}
	state.Kept = state.isEternal || token.IsKept(stored)
	state.TTL = max(Shown(seen.TTL), time.Millisecond) // the client of another process may have no time left
	state.stays = asked.Add(seen.TTL)
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.table[key]; now != nil && now.token == stored {
		g = now
	}
	switch {
	case g == nil || g.token != stored:
	case g.isExtendedElsewhere(state.stays):
		if g.state != changing { // perhaps by a change under way
			s.forget(g)
		}
	case g.isOver():
		g.conclude() // from now on, since a client learns of it
		return State{}, nil
	case !g.isAdopted:
		state.Kept, state.TTL = g.isKept(), g.left()
	}
	return state, nil
}

// noQuorum is the library's error for nodes without an answer.
func (s *Store) noQuorum(seen redlock.KeyState) error {
	e := &redlock.QuorumError{Cause: redlock.ErrNoQuorum, Nodes: len(seen.Nodes)}
	for _, n := range seen.Nodes {
		if why := cmp.Or(n.Err, s.lacking()[n.Node]); why != nil {
			e.Failed = append(e.Failed, redlock.NodeError{Node: n.Node, Addr: n.Addr, Err: why})
		}
	}
	return e
}

// Fence returns the fencing token of a lock granted to value by this process, or 0.
func (s *Store) Fence(key, value string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.table[key]; g != nil && g.value == value && !g.isOver() {
		return g.Lock.Fence()
	}
	return 0
}
