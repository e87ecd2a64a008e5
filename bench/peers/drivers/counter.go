package drivers

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/redis/rueidis"

	"github.com/redlock-go/redlock/bench/crowd"
)

// Counter is a read/write lock on the first of the nodes as users make it of redsync: a mutex, and a counter of readers. A
// reader takes the mutex for as long as it needs to count itself; a writer takes it and waits until the counter is zero.
func Counter(ctx context.Context, nodes []string) (crowd.Library, error) {
	client, err := rueidis.NewClient(rueidisOptions(nodes[0]))
	if err != nil {
		return nil, err
	}
	return counter{client, redsync.New(rueidisPool{client})}, nil
}

const counterPause = 10 * time.Millisecond // of a writer that waits for readers

// uncount takes one from the counter, unless it has ended meanwhile.
var uncount = rueidis.NewLuaScript(`if redis.call("EXISTS", KEYS[1]) == 1 then return redis.call("DECR", KEYS[1]) end return 0`)

type counter struct {
	client  rueidis.Client
	redsync *redsync.Redsync
}

func (c counter) Close() error { c.client.Close(); return nil }

func (c counter) Caller() crowd.Caller { return &counterCaller{counter: c} }

// counterCaller is a [crowd.Caller].
type counterCaller struct {
	counter
	mutex   *redsync.Mutex // a writer's
	readers string         // the counter's key
}

func (c *counterCaller) Acquire(ctx context.Context, key string, ttl time.Duration, want crowd.Want) error {
	mutex := c.redsync.NewMutex(key+":mutex", redsync.WithExpiry(ttl), redsync.WithTries(math.MaxInt32))
	c.mutex, c.readers = nil, key+":readers"
	if err := mutex.LockContext(ctx); err != nil {
		return err
	}
	if want == crowd.Read {
		err := c.count(ctx, ttl)
		_, _ = mutex.UnlockContext(context.WithoutCancel(ctx))
		return err
	}
	c.mutex = mutex
	for {
		text, err := c.client.Do(ctx, c.client.B().Get().Key(c.readers).Build()).ToString()
		n, _ := strconv.Atoi(text)
		if rueidis.IsRedisNil(err) || err == nil && n <= 0 {
			return nil
		}
		if err == nil && time.Until(mutex.Until()) < ttl/2 {
			_, err = mutex.ExtendContext(ctx)
		}
		if err == nil {
			time.Sleep(counterPause)
			err = ctx.Err()
		}
		if err != nil {
			_, _ = mutex.UnlockContext(context.WithoutCancel(ctx))
			return err
		}
	}
}

// count adds a reader. The counter ends a TTL after the last one.
func (c *counterCaller) count(ctx context.Context, ttl time.Duration) error {
	err := c.client.Do(ctx, c.client.B().Incr().Key(c.readers).Build()).Error()
	if err != nil {
		return err
	}
	return c.client.Do(ctx, c.client.B().Pexpire().Key(c.readers).Milliseconds(ttl.Milliseconds()).Build()).Error()
}

func (c *counterCaller) Release(ctx context.Context) error {
	if c.mutex != nil {
		_, err := c.mutex.UnlockContext(ctx)
		return err
	}
	return uncount.Exec(ctx, c.client, []string{c.readers}, nil).Error()
}
