package grants

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/token"
	"github.com/redlock-go/redlock/quorum"
)

// MaxValue is how long a client's value may be, in bytes. With its token it is the longest that
// Client.Attach takes.
const MaxValue = 232

// Config configures a Store.
type Config struct {
	Client *redlock.Client
	// MaxTTL and NodeTimeout are those of the Client: a TTL is not longer than MaxTTL with its padding.
	MaxTTL, NodeTimeout time.Duration
	// NoTTL, if set, grants locks without an expiry, for this long, and keeps them alive.
	NoTTL time.Duration
}

// Store grants locks. It is safe for concurrent use.
type Store struct {
	cfg  Config
	lost context.CancelFunc // ends all that is kept alive
	kept context.Context
	all  Quota // of what is kept alive

	mu     sync.Mutex
	table  map[string]*Grant
	sweep  int // size of the table at which grants that have ended are dropped
	queues map[string]*queue
}

// Grant is a lock that this process was granted, or has extended.
type Grant struct {
	Lock  redlock.Lock
	store *Store
	value string
	alive context.Context // ends when it is no longer kept alive; nil: it never was
	stop  func()          // has it kept alive no longer

	isKeptElsewhere bool // by the front end that has granted it

	end  *time.Timer // releases a lock with less left for its client than at the nodes; or nil
	ends time.Time   // when it does
}

// isKept reports whether the lock is kept alive.
func (g *Grant) isKept() bool { return g.alive != nil && g.alive.Err() == nil }

// New returns a Store.
func New(cfg Config) *Store {
	s := &Store{cfg: cfg, table: map[string]*Grant{}, sweep: minSweep, queues: map[string]*queue{}}
	s.kept, s.lost = context.WithCancel(context.Background())
	return s
}

// Close ends what is kept alive: these locks end with their TTL.
func (s *Store) Close() { s.lost() }

// Pad returns the TTL to store so that ttl is still valid when the client is answered: (ttl +
// nodeTimeout + 2 ms) / 0.99, in whole milliseconds.
func Pad(ttl, nodeTimeout time.Duration) time.Duration {
	n := (ttl + allowance(ttl, nodeTimeout) + 2*time.Millisecond) * 100 / 99
	return (n + time.Millisecond - 1).Truncate(time.Millisecond)
}

// allowance is how long an attempt may take, once it is sent.
func allowance(ttl, nodeTimeout time.Duration) time.Duration {
	if nodeTimeout > 0 {
		return nodeTimeout
	}
	return min(ttl/20, 50*time.Millisecond)
}

// check returns the TTL to store.
func (s *Store) check(ttl time.Duration) (time.Duration, error) {
	limit := s.cfg.MaxTTL
	if limit <= 0 {
		limit = redlock.MaxTTL
	}
	if ttl <= 0 {
		return 0, fmt.Errorf("%w: it is %v", ErrTTL, ttl)
	}
	padded := Pad(min(ttl, 2*limit), s.cfg.NodeTimeout) // what is far longer would overflow
	if padded > limit {
		most := limit*99/100 - allowance(limit, s.cfg.NodeTimeout) - 2*time.Millisecond
		return 0, fmt.Errorf("%w: it is %v, and with its padding more than the max-ttl of %v; at most %v works", ErrTTL, ttl, limit, most.Truncate(time.Millisecond))
	}
	return max(padded, redlock.MinTTL), nil
}

// ErrLate is the error of an attempt that the nodes have granted so late that less is left than the
// client has asked for. It is no loss: of an extension the lock may be held.
var ErrLate = errors.New("the nodes have answered so late that less of the TTL is left than was asked for")

// extend sets a TTL of which ttl is left when it returns: twice, if the first took longer than the
// padding.
func extend(ctx context.Context, lock redlock.Lock, padded, ttl time.Duration) error {
	for range 2 {
		if err := lock.Extend(ctx, padded); err != nil {
			return err
		}
		if lock.Remaining() >= ttl {
			return nil
		}
	}
	return ErrLate
}

// Acquire makes one attempt for a client with a value. The error is that of TryAcquire, or ErrTTL.
func (s *Store) Acquire(ctx context.Context, key, value string, ttl time.Duration) (*Grant, error) {
	return s.AcquireWith(ctx, key, value, ttl, Options{})
}

// Options are what a client may ask for beside a lock.
type Options struct {
	Wait bool   // in line, until ctx ends
	Keep *Quota // the lock is kept alive until it is released, is given another TTL, or this process ends
}

// Quota counts the locks that are kept alive for one client, which it bounds.
type Quota struct{ used atomic.Int64 }

// maxKept bounds the locks that are kept alive for one client, maxKeptInAll those of all.
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

// AcquireWith is Acquire with options. The error is also that of Client.Acquire.
func (s *Store) AcquireWith(ctx context.Context, key, value string, ttl time.Duration, o Options) (*Grant, error) {
	padded, err := s.check(ttl)
	if err != nil {
		return nil, err
	}
	call, with := s.cfg.Client.TryAcquire, token.WithValue
	if o.Wait {
		call = s.cfg.Client.Acquire
	}
	if o.Keep != nil {
		if with = token.WithKeptValue; !s.take(o.Keep) {
			return nil, ErrTooMany
		}
	}
	lock, err := call(with(ctx, value), key, padded)
	if err == nil && lock.Remaining() < ttl { // it took longer than the padding
		if extend(ctx, lock, padded, ttl) != nil {
			lock.ReleaseAsync()
			err = ErrLate
		}
	}
	if err != nil {
		if o.Keep != nil {
			s.give(o.Keep)
		}
		return nil, err
	}
	g := &Grant{Lock: lock, store: s, value: value}
	if o.Keep != nil {
		g.alive, g.stop = lock.KeepAlive(s.kept)
		context.AfterFunc(g.alive, func() { s.give(o.Keep) })
	}
	s.put(key, g)
	return g, nil
}

// AcquireForever is Acquire for a client that asks for no expiry: the lock lives until it is
// released, or given one, or this process ends.
func (s *Store) AcquireForever(ctx context.Context, key, value string, kept *Quota) (*Grant, error) {
	if s.cfg.NoTTL <= 0 {
		return nil, ErrNoTTL
	}
	return s.AcquireWith(ctx, key, value, s.cfg.NoTTL, Options{Keep: kept})
}

// Has reports whether ttl is left of a grant.
func (g *Grant) Has(ttl time.Duration) bool { return g.isKept() || g.Lock.Remaining() >= ttl }

// Renew extends a grant so that ttl is left of it.
func (g *Grant) Renew(ctx context.Context, ttl time.Duration) error {
	padded, err := g.store.check(ttl)
	if err != nil {
		return err
	}
	return extend(ctx, g.Lock, padded, ttl)
}

// Drop releases a grant that its client does not need or has not received.
func (g *Grant) Drop() {
	g.store.remove(g.Lock.Key(), g)
	g.Lock.ReleaseAsync()
}

// State is what a quorum has at a key.
type State struct {
	Held  bool
	Value string        // of its client
	token string        // of the lock, with the value
	TTL   time.Duration // what is left at the nodes of a quorum, less drift; 0 without an expiry

	isEternal bool // a value without an expiry, which is no lock
}

// Look asks the nodes what they have at a key. What a minority has is no lock.
func (s *Store) Look(ctx context.Context, key string) (State, error) {
	seen, err := s.cfg.Client.Inspect(ctx, key)
	if err != nil {
		return State{}, err
	}
	stored := seen.Token()
	if stored == "" {
		if seen.Status == redlock.KeyUnknown {
			return State{}, noQuorum(seen)
		}
		return State{}, nil
	}
	left := max(0, seen.TTL-quorum.Drift(seen.TTL))
	if g := s.get(key); g != nil && g.Lock.Token() == stored {
		left = s.left(g, left)
	}
	return State{Held: true, Value: token.ValueIn(stored), token: stored, TTL: left, isEternal: seen.Status == redlock.KeyEternal}, nil
}

// noQuorum is the library's error for nodes that have not answered.
func noQuorum(seen redlock.KeyState) error {
	e := &redlock.QuorumError{Cause: redlock.ErrNoQuorum, Nodes: len(seen.Nodes)}
	for _, n := range seen.Nodes {
		if n.Err != nil {
			e.Failed = append(e.Failed, redlock.NodeError{Node: n.Node, Addr: n.Addr, Err: n.Err})
		}
	}
	return e
}

// IsSame reports whether two looks have shown the same lock, or none.
func (s State) IsSame(other State) bool { return s.token == other.token }

// Fence returns the fencing token of a lock that this process has granted to value, or 0.
func (s *Store) Fence(key, value string) uint64 {
	if g := s.get(key); g != nil && g.value == value && g.Lock.Remaining() > 0 {
		return g.Lock.Fence()
	}
	return 0
}
