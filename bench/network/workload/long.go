package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/bench/network/history"
)

// keep holds a lock for several of its TTLs: by KeepAlive, or by extending it.
func keep(w *worker) time.Duration {
	key, ttl := fmt.Sprint("keep", w.rng.IntN(2)), w.ttl()
	c, ctx, cancel := w.begin("Acquire", ttl, w.patience(), key)
	defer cancel()
	l, err := w.locks.Acquire(ctx, key, ttl)
	if !w.granted(c, err, l) {
		return w.upTo(40 * time.Millisecond)
	}
	d := 2*time.Second + w.upTo(5*time.Second)
	if w.rng.IntN(4) == 0 { // through several faults, after each of which nodes lack the key
		d = 10*time.Second + w.upTo(10*time.Second)
	}
	end := history.Now().Add(d)
	if own, ok := l.(redlock.Lock); ok && w.rng.IntN(2) == 0 {
		c.API = "KeepAlive"
		w.kept(c, own, end)
	} else {
		c.API = "Extend"
		w.extended(c, l, end)
	}
	w.release(c, l)
	return w.upTo(40 * time.Millisecond)
}

// kept holds l until a time, kept alive.
func (w *worker) kept(c *history.Call, l redlock.Lock, end history.Time) {
	ctx, stop := l.KeepAlive(context.Background())
	defer stop()
	for look(c, l) {
		if ctx.Err() != nil {
			c.Over = result(context.Cause(ctx))
			return
		}
		w.write(c, l, false)
		if history.Now() >= end || w.isCalm() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	c.Over = "validity"
}

// extended holds l until a time, and extends it at each third of its TTL.
func (w *worker) extended(c *history.Call, l held, end history.Time) {
	next := history.Now().Add(c.TTL / 3)
	for look(c, l) {
		now := history.Now()
		if now >= end || w.isCalm() {
			return
		}
		if now >= next {
			x := history.Extend{Client: w.Client, Worker: w.name, Key: c.Keys[0], Before: l.Remaining(), Called: history.Now()}
			ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
			x.Result = result(l.Extend(ctx, c.TTL))
			cancel()
			x.Answered = history.Now()
			w.file.Add(history.Record{Extend: &x})
			switch next = now.Add(c.TTL / 3); x.Result {
			case history.OK:
			case history.NotHeld:
				c.Over = history.NotHeld
				return
			default:
				next = now.Add(c.TTL / 20)
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	c.Over = "validity"
}

// breakable is a key that operators break: one of all processes, or one of this process.
func breakable(w *worker) string {
	if w.rng.IntN(2) == 0 {
		return "broken"
	}
	return fmt.Sprint("broken-", w.Client)
}

// patient holds a breakable key for some time, of which a long TTL leaves enough to pass the lock on. A third of the time the key
// is one of a set, which asks the nodes also where the process believes that it holds the key.
func patient(w *worker) time.Duration {
	key, ttl := breakable(w), w.ttl()
	c, ctx, cancel := w.begin("Acquire", ttl, w.patience(), key)
	defer cancel()
	var l redlock.Lock
	var err error
	if w.rng.IntN(3) == 0 {
		c.API, c.Keys = "TryAcquireAll", []string{key, "aside-" + w.name}
		l, err = w.client.TryAcquireAll(ctx, ttl, c.Keys...)
	} else {
		l, err = w.client.Acquire(ctx, key, ttl)
	}
	if w.granted(c, err, l) {
		d := w.section(ttl)
		if !w.isCalm() && w.rng.IntN(2) == 0 {
			d = ttl / 10
		}
		w.hold(c, l, d)
	}
	return w.upTo(60 * time.Millisecond)
}

// operate breaks a lock now and then, as an operator does: by Inspect, Attach and Release.
func operate(w *worker) time.Duration {
	const pause = 100 * time.Millisecond
	key := breakable(w)
	if w.isCalm() {
		return pause
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
	defer cancel()
	s, err := w.client.Inspect(ctx, key)
	if err != nil || s.Token() == "" {
		return pause
	}
	l, err := w.client.Attach(ctx, key, s.Token(), time.Now().Add(s.TTL))
	if err != nil {
		return pause
	}
	b := history.Break{Client: w.Client, Key: key, Digest: s.Digest, Called: history.Now()}
	b.Result = result(l.Release(ctx))
	b.Answered = history.Now()
	w.file.Add(history.Record{Break: &b})
	return pause
}
