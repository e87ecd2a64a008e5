package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/bench/network/history"
)

// A task is what a worker does again and again. It returns how long the worker rests.
type task func(w *worker) time.Duration

// hot wants one of three keys that all want.
func hot(w *worker) time.Duration {
	key, ttl := fmt.Sprint("hot", w.rng.IntN(3)), w.ttl()
	c, ctx, cancel := w.begin("Acquire", ttl, w.patience(), key)
	defer cancel()
	if w.client != nil && w.rng.IntN(5) < 2 {
		c.API = "Do"
		w.do(c, w.section(ttl), func(f func(context.Context) error) error { return w.client.Do(ctx, key, ttl, f) })
		return w.upTo(40 * time.Millisecond)
	}
	if l, err := w.locks.Acquire(ctx, key, ttl); w.granted(c, err, l) {
		w.hold(c, l, w.section(ttl))
	}
	return w.upTo(40 * time.Millisecond)
}

// try asks once for a key of few.
func try(w *worker) time.Duration {
	key, ttl := fmt.Sprint("try", w.rng.IntN(2)), w.ttl()
	if w.rng.IntN(4) == 0 {
		key = fmt.Sprint("hot", w.rng.IntN(3))
	}
	c, ctx, cancel := w.begin("TryAcquire", ttl, 2*time.Second, key)
	defer cancel()
	if l, err := w.locks.TryAcquire(ctx, key, ttl); w.granted(c, err, l) {
		w.hold(c, l, w.upTo(30*time.Millisecond))
	}
	return 10*time.Millisecond + w.upTo(50*time.Millisecond)
}

// probe measures availability: it takes free keys, one after another.
func probe(w *worker) time.Duration {
	w.n++
	key := fmt.Sprintf("probe-%d-%d", w.Client, w.n%40) // a key in constant demand is left free for a while
	c, ctx, cancel := w.begin("Acquire", time.Second, 10*time.Second, key)
	defer cancel()
	if l, err := w.locks.Acquire(ctx, key, time.Second); w.granted(c, err, l) {
		w.hold(c, l, 0)
	}
	return 15 * time.Millisecond
}

// own asks once for a key that no other worker ever wants, a third of the time with hardly any.
func own(w *worker) time.Duration {
	key, d := fmt.Sprint("own-", w.Client), 2*time.Second
	if w.rng.IntN(3) == 0 {
		d = time.Millisecond + w.upTo(60*time.Millisecond)
	}
	c, ctx, cancel := w.begin("TryAcquire", w.bounded(2*time.Second), d, key)
	defer cancel()
	if l, err := w.either(c, ctx); w.granted(c, err, l) {
		w.hold(c, l, w.upTo(20*time.Millisecond))
	}
	return 10*time.Millisecond + w.upTo(40*time.Millisecond)
}

// either asks once for the key of c: a third of the time as a reader, where the library has any.
func (w *worker) either(c *history.Call, ctx context.Context) (held, error) {
	if w.Compared || w.client == nil || w.rng.IntN(3) > 0 {
		return w.locks.TryAcquire(ctx, c.Keys[0], c.TTL)
	}
	c.API, c.Shared = "TryAcquireShared", true
	return w.client.TryAcquireShared(ctx, c.Keys[0], c.TTL)
}

// crowd is several callers of one process with little time, for a key that no other process wants.
func crowd(w *worker) time.Duration {
	key, ttl := fmt.Sprint("crowd-", w.Client), w.ttl()
	c, ctx, cancel := w.begin("Acquire", ttl, 30*time.Millisecond+w.upTo(770*time.Millisecond), key)
	defer cancel()
	if l, err := w.locks.Acquire(ctx, key, ttl); w.granted(c, err, l) {
		w.hold(c, l, w.upTo(20*time.Millisecond))
		return 30*time.Millisecond + w.upTo(120*time.Millisecond)
	}
	return 0
}

// once asks with little time for a key that is never used again: nothing may stay of it.
func once(w *worker) time.Duration {
	w.n++
	key := fmt.Sprintf("once-%d-%d", w.Client, w.n)
	c, ctx, cancel := w.begin("TryAcquire", w.OnceTTL, time.Millisecond+w.upTo(120*time.Millisecond), key)
	defer cancel()
	if l, err := w.either(c, ctx); w.granted(c, err, l) {
		w.hold(c, l, w.upTo(50*time.Millisecond))
	}
	return 50*time.Millisecond + w.upTo(100*time.Millisecond)
}
