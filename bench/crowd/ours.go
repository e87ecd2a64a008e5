package crowd

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/redlock-go/redlock"
)

// Ours is this library.
func Ours(ctx context.Context, nodes []string) (Library, error) {
	const patience = 10 * time.Second // on a busy machine nodes are late
	c, err := redlock.New(redlock.Config{Nodes: nodes, NodeTimeout: patience, StallTimeout: patience})
	if err != nil {
		return nil, err
	}
	return ours{c}, c.Ready(ctx)
}

type ours struct{ *redlock.Client }

func (o ours) Caller() Caller { return &ourCaller{client: o.Client} }

type ourCaller struct {
	client *redlock.Client
	lock   redlock.Lock
}

func (c *ourCaller) Acquire(ctx context.Context, key string, ttl time.Duration, want Want) (err error) {
	switch want {
	case Read:
		c.lock, err = c.client.AcquireShared(ctx, key, ttl)
	case Write:
		c.lock, err = c.client.Acquire(ctx, key, ttl)
	default:
		c.lock, err = c.client.TryAcquire(ctx, key, ttl)
		for errors.Is(err, redlock.ErrTaken) {
			time.Sleep(50*time.Millisecond + rand.N(200*time.Millisecond))
			c.lock, err = c.client.TryAcquire(ctx, key, ttl)
		}
	}
	return err
}

func (c *ourCaller) Release(ctx context.Context) error { return c.lock.Release(ctx) }
