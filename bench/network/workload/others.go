package workload

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/go-redsync/redsync/v4"
	rsredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/bench/network/history"
)

// options are of a client of one server, as a careful user sets it up: it obeys contexts and timeouts.
func options(address string) *redis.Options {
	return &redis.Options{
		Addr: address, DialTimeout: time.Second, ReadTimeout: time.Second, WriteTimeout: time.Second, ContextTimeoutEnabled: true,
		PoolSize: 20, DisableIdentity: true,
	}
}

// bySync is redsync on go-redis.
type bySync struct{ *redsync.Redsync }

func newRedsync(addresses []string) bySync {
	var pools []rsredis.Pool
	for _, a := range addresses {
		pools = append(pools, goredis.NewPool(redis.NewClient(options(a))))
	}
	return bySync{redsync.New(pools...)}
}

// Acquire tries until ctx ends; redsync gives up after 32 tries.
func (s bySync) Acquire(ctx context.Context, key string, ttl time.Duration) (held, error) {
	for {
		m := s.NewMutex(key, redsync.WithExpiry(ttl))
		if err := m.LockContext(ctx); err == nil {
			return mutex{m}, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

func (s bySync) TryAcquire(ctx context.Context, key string, ttl time.Duration) (held, error) {
	m := s.NewMutex(key, redsync.WithExpiry(ttl))
	return mutex{m}, m.TryLockContext(ctx)
}

type mutex struct{ *redsync.Mutex }

func (m mutex) Fence() uint64            { return 0 }
func (m mutex) Remaining() time.Duration { return time.Until(m.Until()) }

func (m mutex) Release(ctx context.Context) error {
	ok, err := m.UnlockContext(ctx)
	if err == nil && !ok {
		return redsync.ErrFailed
	}
	return err
}

func (m mutex) Extend(ctx context.Context, _ time.Duration) error {
	ok, err := m.ExtendContext(ctx)
	if err == nil && !ok {
		return redsync.ErrExtendFailed
	}
	return err
}

// byHand is Redlock as a user writes it in an afternoon: whole, or with one of five mistakes. Of one server it is the usual
// lock of a single Redis, and that is how it is a client of redlock serve.
type byHand struct {
	nodes      []*redis.Client
	quorum     int
	kind       string
	clock      hostClock
	unanswered atomic.Bool // a command: it may be done yet
}

func newByHand(addresses []string, kind string, of hostClock) *byHand {
	b := &byHand{quorum: len(addresses)/2 + 1, kind: kind, clock: of}
	if kind == history.Half {
		b.quorum = len(addresses) / 2
	}
	for _, a := range addresses {
		o := options(a)
		o.MaxRetries, o.Dialer = -1, abruptly(redis.NewDialer(o))
		b.nodes = append(b.nodes, redis.NewClient(o))
	}
	return b
}

// abruptly has the kernel drop what a connection has not sent when it is closed. It would go on to send a SET for seconds, and
// the key would be locked for a caller that has gone.
func abruptly(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if t, ok := c.(*net.TCPConn); ok {
			_ = t.SetLinger(0)
		}
		return c, err
	}
}

// The script of a release, and of an extension.
const (
	releaseScript = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`
	extendScript  = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) else return 0 end`
)

// ask asks all nodes at once. Of those that did not say yes, err is the failure of the last, if one failed.
func (b *byHand) ask(ctx context.Context, command ...any) (yes int, err error) {
	replies := make(chan *redis.Cmd, len(b.nodes))
	for _, n := range b.nodes {
		go func() { replies <- n.Do(ctx, command...) }()
	}
	for range b.nodes {
		switch reply := <-replies; {
		case reply.Err() == redis.Nil || reply.Val() == int64(0):
		case reply.Err() != nil:
			err = reply.Err()
			b.unanswered.Store(true)
		default:
			yes++
		}
	}
	return yes, err
}

func (b *byHand) TryAcquire(ctx context.Context, key string, ttl time.Duration) (held, error) {
	l := &value{b, key, rndToken(), b.validUntil(ttl)}
	yes, err := b.ask(ctx, "SET", key, l.token, "NX", "PX", ttl.Milliseconds())
	if b.kind == history.NoElapsed {
		l.until = b.validUntil(ttl)
	}
	if yes >= b.quorum && (l.Remaining() > 0) {
		return l, nil
	}
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	go func() { defer cancel(); _ = l.Release(clean) }()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, redlock.ErrNoQuorum
	}
	return nil, redlock.ErrTaken
}

// validUntil is when the validity of a lock ends that is asked for now, by the clock of the host.
func (b *byHand) validUntil(ttl time.Duration) time.Duration {
	drift := ttl/100 + 2*time.Millisecond
	if b.kind == history.NoDrift {
		drift = 0
	}
	return b.clock.now() + ttl - drift
}

func (b *byHand) Acquire(ctx context.Context, key string, ttl time.Duration) (held, error) {
	for {
		if l, err := b.TryAcquire(ctx, key, ttl); err == nil {
			return l, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(30 * time.Millisecond):
		}
	}
}

// value is a lock of byHand.
type value struct {
	*byHand
	key, token string
	until      time.Duration // by the clock of the host
}

func (l *value) Fence() uint64 { return 0 }

func (l *value) Remaining() time.Duration {
	if l.kind == history.NoValidity {
		return time.Second
	}
	return l.until - l.clock.now()
}

func (l *value) Release(ctx context.Context) error {
	command := []any{"EVAL", releaseScript, 1, l.key, l.token}
	if l.kind == history.NoToken {
		command = []any{"DEL", l.key}
	}
	return l.confirmed(ctx, command)
}

func (l *value) Extend(ctx context.Context, ttl time.Duration) error {
	until := l.validUntil(ttl)
	err := l.confirmed(ctx, []any{"EVAL", extendScript, 1, l.key, l.token, ttl.Milliseconds()})
	if err == nil {
		l.until = until
	}
	return err
}

// confirmed is nil if a quorum has done what was asked.
func (l *value) confirmed(ctx context.Context, command []any) error {
	switch yes, err := l.ask(ctx, command...); {
	case yes >= l.quorum:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return redlock.ErrNoQuorum
	}
	return redlock.ErrNotHeld
}
