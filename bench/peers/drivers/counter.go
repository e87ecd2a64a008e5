package drivers

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/redis/rueidis"

	"github.com/redlock-go/redlock/bench/harness"
)

// Counter is a read/write lock on the first of the nodes as users make it of redsync: a mutex, and a counter of readers. A
// reader takes the mutex for as long as it needs to count itself; a writer takes it and waits until the counter is zero.
type Counter struct{}

func (Counter) Name() string { return "counter" }

func (Counter) Weaker() string { return "one server" }

func (Counter) Shares() {}

func (Counter) Open(_ context.Context, cfg harness.Config) (harness.Session, error) {
	client, err := rueidis.NewClient(rueidisOptions(cfg.Nodes[0]))
	if err != nil {
		return nil, err
	}
	locks := redsync.New(rueidisPool{client})
	return &session{closers{well(client.Close)}, func() harness.Worker {
		return &counterWorker{client: client, redsync: locks, cfg: cfg}
	}}, nil
}

const counterPause = 10 * time.Millisecond // of a writer that waits for readers

// uncount takes one from the counter, unless it has ended meanwhile.
var uncount = rueidis.NewLuaScript(`if redis.call("EXISTS", KEYS[1]) == 1 then return redis.call("DECR", KEYS[1]) end return 0`)

type counterWorker struct {
	client  rueidis.Client
	redsync *redsync.Redsync
	cfg     harness.Config
	mutex   *redsync.Mutex // a writer's
	readers string         // the counter's key
}

func (c *counterWorker) Acquire(ctx context.Context, key string) (bool, error) {
	mutex := c.redsync.NewMutex(key+":mutex", redsync.WithExpiry(c.cfg.TTL), redsync.WithTries(math.MaxInt32))
	c.mutex, c.readers = nil, key+":readers"
	lock, waits := mutex.TryLockContext, c.cfg.Scenario == harness.Contended
	if waits {
		lock = mutex.LockContext
	}
	if err := lock(ctx); err != nil {
		if taken := (*redsync.ErrTaken)(nil); errors.As(err, &taken) {
			return false, nil
		}
		return false, err
	}
	if c.cfg.Share {
		err := c.count(ctx)
		_, _ = mutex.UnlockContext(context.WithoutCancel(ctx))
		return err == nil, err
	}
	c.mutex = mutex
	for {
		text, err := c.client.Do(ctx, c.client.B().Get().Key(c.readers).Build()).ToString()
		n, _ := strconv.Atoi(text)
		if rueidis.IsRedisNil(err) || err == nil && n <= 0 {
			return true, nil
		}
		if err == nil && time.Until(mutex.Until()) < c.cfg.TTL/2 {
			_, err = mutex.ExtendContext(ctx)
		}
		if err == nil && waits {
			time.Sleep(counterPause)
			err = ctx.Err()
		}
		if err != nil || !waits {
			_, _ = mutex.UnlockContext(context.WithoutCancel(ctx))
			return false, err
		}
	}
}

// count adds a reader. The counter ends a TTL after the last one.
func (c *counterWorker) count(ctx context.Context) error {
	err := c.client.Do(ctx, c.client.B().Incr().Key(c.readers).Build()).Error()
	if err != nil {
		return err
	}
	return c.client.Do(ctx, c.client.B().Pexpire().Key(c.readers).Milliseconds(c.cfg.TTL.Milliseconds()).Build()).Error()
}

func (c *counterWorker) Release(ctx context.Context) error {
	if c.mutex != nil {
		_, err := c.mutex.UnlockContext(ctx)
		return err
	}
	return uncount.Exec(ctx, c.client, []string{c.readers}, nil).Error()
}
