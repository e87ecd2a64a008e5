package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/bench/network/history"
)

// sets takes two or three of four keys at once.
func sets(w *worker) time.Duration {
	var keys []string
	for _, k := range w.rng.Perm(4)[:2+w.rng.IntN(2)] {
		keys = append(keys, fmt.Sprint("set", k))
	}
	ttl := w.ttl()
	c, ctx, cancel := w.begin("AcquireAll", ttl, w.patience(), keys...)
	defer cancel()
	var l redlock.Lock
	var err error
	switch w.rng.IntN(4) {
	case 0:
		c.API = "DoAll"
		w.do(c, w.section(ttl), func(f func(context.Context) error) error { return w.client.DoAll(ctx, ttl, keys, f) })
		return w.upTo(40 * time.Millisecond)
	case 1:
		c.API = "TryAcquireAll"
		l, err = w.client.TryAcquireAll(ctx, ttl, keys...)
	default:
		l, err = w.client.AcquireAll(ctx, ttl, keys...)
	}
	if w.granted(c, err, l) {
		w.hold(c, l, w.section(ttl))
	}
	return w.upTo(40 * time.Millisecond)
}

// permit takes one of three permits of a semaphore.
func permit(w *worker) time.Duration {
	ttl, keys := w.ttl(), redlock.Permits("permits", 3)
	c, ctx, cancel := w.begin("AcquireAny", ttl, w.patience(), keys...)
	defer cancel()
	acquire := w.client.AcquireAny
	if w.rng.IntN(4) == 0 {
		c.API, acquire = "TryAcquireAny", w.client.TryAcquireAny
	}
	if l, err := acquire(ctx, ttl, keys...); w.granted(c, err, l) {
		w.hold(c, l, w.section(ttl))
	}
	return w.upTo(60 * time.Millisecond)
}

// shared has a key together with other readers, now and then for longer than the TTL.
func shared(w *worker) time.Duration {
	key, ttl := fmt.Sprint("book", w.rng.IntN(2)), w.ttl()
	c, ctx, cancel := w.begin("AcquireShared", ttl, w.patience(), key)
	defer cancel()
	c.Shared = true
	acquire := w.client.AcquireShared
	switch w.rng.IntN(5) {
	case 0:
		c.API = "DoShared"
		w.do(c, w.section(ttl), func(f func(context.Context) error) error { return w.client.DoShared(ctx, key, ttl, f) })
		return w.upTo(60 * time.Millisecond)
	case 1:
		c.API, acquire = "TryAcquireShared", w.client.TryAcquireShared
	}
	l, err := acquire(ctx, key, ttl)
	switch {
	case !w.granted(c, err, l):
	case w.rng.IntN(20) == 0 && !w.isCalm():
		c.API = "KeepAlive"
		w.kept(c, l, history.Now().Add(w.upTo(4*time.Second)))
		w.release(c, l)
	default:
		w.hold(c, l, w.section(ttl))
	}
	return w.upTo(60 * time.Millisecond)
}

// write has one of these keys alone.
func write(w *worker) time.Duration {
	key, ttl := fmt.Sprint("book", w.rng.IntN(2)), w.ttl()
	c, ctx, cancel := w.begin("Acquire", ttl, w.patience(), key)
	defer cancel()
	if l, err := w.client.Acquire(ctx, key, ttl); w.granted(c, err, l) {
		w.hold(c, l, w.section(ttl))
	}
	return 50*time.Millisecond + w.upTo(250*time.Millisecond)
}
