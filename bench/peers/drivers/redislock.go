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
	var options *redislock.Options
	if cfg.Scenario == harness.Contended {
		options = &redislock.Options{RetryStrategy: redislock.LimitRetry(redislock.LinearBackoff(redislockPause), 1<<30)}
	}
	locks := redislock.New(client)
	return &session{closers{client.Close}, func() harness.Worker {
		return &redislockWorker{client: locks, ttl: cfg.TTL, options: options}
	}}, nil
}

// redislockPause is between the attempts for a lock that is taken: the least
// that the documentation recommends for its own back-off.
const redislockPause = 16 * time.Millisecond

type redislockWorker struct {
	client  *redislock.Client
	ttl     time.Duration
	options *redislock.Options
	lock    *redislock.Lock
}

func (w *redislockWorker) Acquire(ctx context.Context, key string) (ok bool, err error) {
	w.lock, err = w.client.Obtain(ctx, key, w.ttl, w.options)
	if errors.Is(err, redislock.ErrNotObtained) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return false, nil // it waits for no longer than the TTL
	}
	return err == nil, err
}

func (w *redislockWorker) Release(ctx context.Context) error { return w.lock.Release(ctx) }
