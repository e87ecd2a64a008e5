package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/redlock-go/redlock"
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

// permit takes one of n keys: of a semaphore, or as a reader.
func permit(name string, n int) task {
	keys := redlock.Permits(name, n)
	return func(w *worker) time.Duration {
		ttl := w.ttl()
		c, ctx, cancel := w.begin("AcquireAny", ttl, w.patience(), keys...)
		defer cancel()
		var l redlock.Lock
		var err error
		if w.rng.IntN(4) == 0 {
			c.API = "TryAcquireAny"
			l, err = w.client.TryAcquireAny(ctx, ttl, keys...)
		} else {
			l, err = w.client.AcquireAny(ctx, ttl, keys...)
		}
		if w.granted(c, err, l) {
			w.hold(c, l, w.section(ttl))
		}
		return w.upTo(60 * time.Millisecond)
	}
}

// writer takes all keys of which readers take one.
func writer(name string, n int) task {
	keys := redlock.Permits(name, n)
	return func(w *worker) time.Duration {
		ttl := w.ttl()
		c, ctx, cancel := w.begin("AcquireAll", ttl, w.patience(), keys...)
		defer cancel()
		l, err := w.client.AcquireAll(ctx, ttl, keys...)
		if w.granted(c, err, l) {
			w.hold(c, l, w.section(ttl))
		}
		return 50*time.Millisecond + w.upTo(250*time.Millisecond)
	}
}
