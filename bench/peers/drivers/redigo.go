package drivers

import (
	"context"
	"errors"
	"time"

	redsync "github.com/go-redsync/redsync/v4/redis"
	redsyncredigo "github.com/go-redsync/redsync/v4/redis/redigo"
	"github.com/gomodule/redigo/redis"
)

// Redigo makes redsync's pool out of a pool of redigo. A worker that finds the
// pool of a node empty has a failed vote at once. It could wait instead, but a
// pool that is closed meanwhile, as it is while calls of WithFailFast are still
// under way, panics in the waiting goroutine and takes the process along.
var Redigo = Pool{name: "redigo", dial: func(ctx context.Context, addr string, conns int) (redsync.Pool, func() error, error) {
	pool := &redis.Pool{
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialContext(ctx, "tcp", addr,
				redis.DialConnectTimeout(timeout), redis.DialReadTimeout(timeout), redis.DialWriteTimeout(timeout))
		},
		MaxIdle:     conns,
		MaxActive:   conns,
		IdleTimeout: time.Hour,
	}
	if err := fillRedigo(ctx, pool, conns); err != nil {
		return nil, nil, errors.Join(err, pool.Close())
	}
	return redsyncredigo.NewPool(pool), pool.Close, nil
}}

// fillRedigo opens all connections of a pool, by taking them all at once.
func fillRedigo(ctx context.Context, pool *redis.Pool, conns int) error {
	all := make([]redis.Conn, 0, conns)
	defer func() {
		for _, c := range all {
			_ = c.Close() // gives it back
		}
	}()
	for range conns {
		c, err := pool.GetContext(ctx)
		if err != nil {
			return err
		}
		all = append(all, c)
		if _, err := c.Do("PING"); err != nil {
			return err
		}
	}
	return nil
}
