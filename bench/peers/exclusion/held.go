//go:build linux

package main

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/redis/go-redis/v9"

	"github.com/redlock-go/redlock"
)

// held is a lock of any library.
type held struct {
	keys      []int
	isWriter  bool
	remaining func() time.Duration
	release   func()
}

func name(key int) string { return "exclusion-" + strconv.Itoa(key) }

// byUs acquires in one of the ways of this library.
func byUs(ctx context.Context, c *redlock.Client) (held, error) {
	h := held{keys: []int{rand.IntN(keys)}}
	key, ttl := name(h.keys[0]), ttl/4+rand.N(ttl*3/4)
	var l redlock.Lock
	var err error
	switch rand.IntN(16) {
	case 0, 1:
		l, err = c.TryAcquireShared(ctx, key, ttl)
	case 2:
		h.isWriter = true
		l, err = c.TryAcquire(ctx, key, ttl)
	case 3, 4:
		h.isWriter = true
		l, err = c.Acquire(ctx, key, ttl)
	case 5:
		h.isWriter, h.keys = true, []int{0, 1}
		l, err = c.AcquireAll(ctx, ttl, name(0), name(1))
	default:
		l, err = c.AcquireShared(ctx, key, ttl)
	}
	if err != nil {
		return h, err
	}
	h.remaining = l.Remaining
	if rand.IntN(8) == 0 {
		_ = l.Extend(ctx, ttl)
	}
	h.release = func() {
		switch n := rand.IntN(100); {
		case n == 0: // it ends with its TTL
		case n < 15:
			l.ReleaseAsync()
		default:
			_ = l.Release(context.Background())
		}
	}
	if rand.IntN(100) == 0 { // for longer than its TTL
		_, stop := l.KeepAlive(context.Background())
		release := h.release
		h.hold(rand.N(ttl * 3 / 2))
		h.release = func() { stop(); release() }
	}
	return h, nil
}

// bySync acquires by redsync.
func bySync(ctx context.Context, locks *redsync.Redsync) (held, error) {
	h := held{keys: []int{rand.IntN(keys)}, isWriter: true}
	m := locks.NewMutex(name(h.keys[0]), redsync.WithExpiry(ttl), redsync.WithTries(8))
	h.remaining = func() time.Duration { return time.Until(m.Until()) }
	h.release = func() { _, _ = m.UnlockContext(context.Background()) }
	return h, m.LockContext(ctx)
}

// byBroken believes that it has a lock wherever the other kind does.
func byBroken(ctx context.Context, one *redis.Client, isWriter bool) (held, error) {
	h := held{keys: []int{rand.IntN(keys)}, isWriter: isWriter}
	h.remaining, h.release = func() time.Duration { return time.Second }, func() {}
	kind, err := one.Type(ctx, name(h.keys[0])).Result()
	if err == nil && kind != "zset" == isWriter {
		err = redlock.ErrTaken
	}
	return h, err
}
