package drivers

import (
	"context"
	"errors"
	"io"
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
	pool, err := dialRedigo(ctx, addr, conns)
	if err != nil {
		return nil, nil, err
	}
	return redsyncredigo.NewPool(pool), pool.Close, nil
}}

// dialRedigo makes a pool with a number of connections, all of them open.
func dialRedigo(ctx context.Context, addr string, conns int) (*redis.Pool, error) {
	pool := &redis.Pool{
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialContext(ctx, "tcp", addr,
				redis.DialConnectTimeout(timeout), redis.DialReadTimeout(timeout), redis.DialWriteTimeout(timeout))
		},
		MaxIdle:     conns,
		MaxActive:   conns,
		IdleTimeout: time.Hour,
	}
	err := fill(conns, func() (io.Closer, error) {
		c, err := pool.GetContext(ctx)
		if err == nil {
			_, err = c.Do("PING")
		}
		return c, err
	})
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return pool, nil
}
