package workload

import (
	"context"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/bench/network/history"
)

// keptOrExtended holds a lock for several of its TTLs: by KeepAlive, or by extending it.
func keptOrExtended(w *worker, c *history.Call, l held) bool {
	d := 2*time.Second + w.upTo(5*time.Second)
	if w.rng.IntN(4) == 0 { // through several faults, after each of which nodes lack the key
		d = 10*time.Second + w.upTo(10*time.Second)
	}
	end := history.Now().Add(d)
	if own, ok := l.(redlock.Lock); ok && w.rng.IntN(2) == 0 {
		w.kept(c, own, end)
	} else {
		w.extended(c, l, end)
	}
	return true
}

// sometimesKept holds one lock of twenty by KeepAlive.
func sometimesKept(w *worker, c *history.Call, l held) bool {
	if w.rng.IntN(20) > 0 || w.isCalm() {
		return false
	}
	w.kept(c, l.(redlock.Lock), history.Now().Add(w.upTo(4*time.Second)))
	return true
}

// kept holds l until a time, kept alive.
func (w *worker) kept(c *history.Call, l redlock.Lock, end history.Time) {
	c.API = "KeepAlive"
	defer w.release(c, l)
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
	c.API = "Extend"
	defer w.release(c, l)
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

// operate breaks a lock now and then, as an operator does: by Inspect, Attach and Release.
func operate(w *worker) time.Duration {
	const pause = 100 * time.Millisecond
	key := breakable(w)[0]
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
	b := history.Break{Client: w.Client, Key: key, Digest: s.Digest, Holder: s.Holder, Called: history.Now()}
	b.Result = result(l.Release(ctx))
	b.Answered = history.Now()
	w.file.Add(history.Record{Break: &b})
	return pause
}
