package drivers

import (
	"context"
	"errors"
	"io"
	"sync"

	redsync "github.com/go-redsync/redsync/v4/redis"
	redsyncgoredis "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// GoRedis makes redsync's pool out of a client of go-redis.
var GoRedis = Pool{name: "goredis", dial: func(ctx context.Context, addr string, conns int) (redsync.Pool, func() error, error) {
	client, err := dialGoRedis(ctx, addr, conns)
	if err != nil {
		return nil, nil, err
	}
	return redsyncgoredis.NewPool(client), client.Close, nil
}}

// quiet turns off the library's log, which is one for the process and has a
// line for each failed dial.
var quiet = sync.OnceFunc(logging.Disable)

// dialGoRedis makes a client with a number of connections, all of them open.
// MaxRetries and DialerRetries are off: by default a node that refuses is
// dialled five times with pauses in between, and a SET that was sent may be sent
// again; a lock is worse off with either.
func dialGoRedis(ctx context.Context, addr string, conns int) (*redis.Client, error) {
	quiet()
	client := redis.NewClient(&redis.Options{
		Addr:                     addr,
		PoolSize:                 conns,
		MaxRetries:               -1,
		DialerRetries:            1,
		DialTimeout:              timeout,
		ReadTimeout:              timeout,
		WriteTimeout:             timeout,
		PoolTimeout:              timeout,
		ContextTimeoutEnabled:    true,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	// MinIdleConns would fill the pool in the background, with a time limit for each
	// connection that hundreds of them at once do not keep.
	err := fill(conns, func() (io.Closer, error) {
		c := client.Conn()
		return c, c.Ping(ctx).Err()
	})
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return client, nil
}
