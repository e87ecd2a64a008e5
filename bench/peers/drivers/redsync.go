package drivers

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"

	"github.com/redlock-go/redlock/bench/harness"
)

// Redsync is redsync v4 on one of its pools.
type Redsync struct {
	Pool     Pool
	FailFast bool // with WithFailFast
}

// Pool is a library that redsync runs on: how a node is dialled, with how many
// connections.
type Pool struct {
	name string
	dial func(ctx context.Context, addr string, conns int) (redis.Pool, func() error, error)
}

// With WithFailFast a worker continues before its slowest nodes have answered, so it may need more
// than one connection to them. It has spare ones, up to a number beyond which the process would
// run out of descriptors.
const (
	failFastSpareMin = 64
	failFastSpareMax = 512
	failFastSpare    = 3 // a worker, between the two
)

func withSpare(conns int) int {
	return conns + min(max(failFastSpare*conns, failFastSpareMin), failFastSpareMax)
}

func (d Redsync) Name() string {
	if d.FailFast {
		return "redsync-" + d.Pool.name + "-ff"
	}
	return "redsync-" + d.Pool.name
}

func (d Redsync) Open(ctx context.Context, cfg harness.Config) (harness.Session, error) {
	conns := cfg.Concurrency
	if d.FailFast {
		conns = withSpare(conns)
	}
	pools, opened, err := openAll(cfg.Nodes, func(addr string) (redis.Pool, func() error, error) { return d.Pool.dial(ctx, addr, conns) })
	if err != nil {
		return nil, err
	}
	locks := redsync.New(pools...)
	options := []redsync.Option{redsync.WithExpiry(cfg.TTL), redsync.WithFailFast(d.FailFast), redsync.WithTries(math.MaxInt32)}
	return &session{opened, func() harness.Worker {
		return &redsyncWorker{redsync: locks, options: options, wait: cfg.Scenario == harness.Contended}
	}}, nil
}

// redsyncWorker makes a mutex for each lock, as the documentation does.
type redsyncWorker struct {
	redsync *redsync.Redsync
	options []redsync.Option
	wait    bool
	mutex   *redsync.Mutex
}

func (w *redsyncWorker) Acquire(ctx context.Context, key string) (bool, error) {
	w.mutex = w.redsync.NewMutex(key, w.options...)
	lock := w.mutex.TryLockContext
	if w.wait {
		lock = w.mutex.LockContext
	}
	err := lock(ctx)
	if err != nil && redsyncTaken(err) {
		return false, nil
	}
	return err == nil, err
}

func (w *redsyncWorker) Remaining() time.Duration {
	return time.Until(w.mutex.Until()) - 2*time.Millisecond
}

func (w *redsyncWorker) Release(ctx context.Context) error {
	ok, err := w.mutex.UnlockContext(ctx)
	if ok {
		return nil // the error may be about a minority
	}
	return cmp.Or(err, errNotHeld)
}

// redsyncTaken reports whether others hold the lock, on all nodes or on some.
func redsyncTaken(err error) bool {
	var (
		taken *redsync.ErrTaken
		node  *redsync.ErrNodeTaken
		sad   *redsync.RedisError
	)
	return errors.As(err, &taken) || errors.As(err, &node) && !errors.As(err, &sad)
}
