package drivers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bsm/redislock"

	"github.com/redlock-go/redlock/bench/harness"
)

// Redislock is bsm/redislock on go-redis. It locks on one server, the first of
// the nodes, and so promises less than the others: when that server is lost, so
// are its locks.
type Redislock struct{}

func (Redislock) Name() string { return "redislock" }

func (Redislock) Weaker() string { return "one server" }

func (Redislock) Open(ctx context.Context, cfg harness.Config) (harness.Session, error) {
	client, err := dialGoRedis(ctx, cfg.Nodes[0], cfg.Concurrency)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.Nodes[0], err)
	}
	s := &redislockSession{closers: closers{client.Close}, client: redislock.New(client), ttl: cfg.TTL}
	if cfg.Scenario == harness.Contended {
		s.wait = 1 << 30
	}
	return s, nil
}

// redislockPause is between the attempts for a lock that is taken: the least
// that the documentation recommends for its own back-off.
const redislockPause = 16 * time.Millisecond

// redislockSession is a [harness.Pool].
type redislockSession struct {
	closers
	client *redislock.Client
	ttl    time.Duration
	wait   int // attempts beyond the first
}

func (s *redislockSession) Worker() (harness.Worker, error) {
	w := &redislockWorker{session: s}
	if s.wait > 0 {
		w.options = &redislock.Options{RetryStrategy: redislock.LimitRetry(redislock.LinearBackoff(redislockPause), s.wait)}
	}
	return w, nil
}

type redislockWorker struct {
	session *redislockSession
	options *redislock.Options
	lock    *redislock.Lock
}

func (w *redislockWorker) Acquire(ctx context.Context, key string) (ok bool, err error) {
	w.lock, err = w.session.client.Obtain(ctx, key, w.session.ttl, w.options)
	if errors.Is(err, redislock.ErrNotObtained) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return false, nil // it waits for no longer than the TTL
	}
	return err == nil, err
}

func (w *redislockWorker) Release(ctx context.Context) error { return w.lock.Release(ctx) }
