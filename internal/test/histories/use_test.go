package histories

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock"
)

// use uses a lock once, in one of all ways.
func (u *caller) use() {
	uses := []func(*caller){
		(*caller).try, (*caller).wait, (*caller).wait, (*caller).wait, (*caller).all, (*caller).do,
		(*caller).keepAlive, (*caller).extend, (*caller).attach, (*caller).op, (*caller).forget,
	}
	if u.permits && u.IntN(8) > 0 {
		u.choose()
		return
	}
	if u.plan.busy && u.IntN(20) > 0 {
		u.wait()
		return
	}
	uses[u.IntN(len(uses))](u)
}

// acquire is Acquire, or TryAcquire now and then.
func (u *caller) acquire(ttl time.Duration, try bool) (redlock.Lock, *holding) {
	ctx, cancel := u.limited()
	defer cancel()
	key, what := u.key(), "acquire"
	var l redlock.Lock
	var err error
	began := time.Now()
	if try {
		what = "try"
		l, err = u.client.TryAcquire(ctx, key, ttl)
	} else {
		wants, done := u.wants(ctx, key)
		l, err = u.client.Acquire(wants, key, ttl)
		done()
	}
	if !u.check(what, began, err) {
		return l, nil
	}
	return l, u.ledger.lock(u.who, u.machine, l)
}

func (u *caller) try()  { u.once(true) }
func (u *caller) wait() { u.once(false) }

func (u *caller) once(try bool) {
	ttl := u.ttl()
	if l, b := u.acquire(ttl, try); b != nil {
		if u.IntN(8) == 0 {
			_ = l.Token()
		}
		u.hold(ttl)
		u.finish(l, b)
	}
}

// finish gives a lock back, in one of all ways.
func (u *caller) finish(l redlock.Lock, b *holding) {
	defer u.ledger.gone(b)
	for range 3 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		switch u.IntN(6) {
		case 0:
			l.ReleaseAsync()
			return
		case 1:
			cancel()
		case 2:
			time.AfterFunc(u.N(time.Millisecond), cancel)
		}
		began := time.Now()
		err := l.Release(ctx)
		if err != nil {
			u.log("%s releases %v: %v", u.who, b.keys, err)
		}
		if u.check("release", began, err) || errors.Is(err, redlock.ErrNotHeld) {
			return
		}
		if u.IntN(2) == 0 { // held, as far as is known, if nothing was sent
			u.sleep(u.N(20 * time.Millisecond))
		}
	}
	l.ReleaseAsync()
}

// choose is AcquireAny in one of all ways, or AcquireAll of all keys.
func (u *caller) choose() {
	ctx, cancel := u.limited()
	defer cancel()
	ttl, began := u.ttl(), time.Now()
	var l redlock.Lock
	var err error
	switch u.IntN(8) {
	case 0:
		err = u.client.DoAny(ctx, ttl, u.keys, func(ctx context.Context) error {
			u.work(ctx, ttl) // its key does not show
			return nil
		})
		u.check("do any", began, err)
		return
	case 1:
		l, err = u.client.TryAcquireAny(ctx, ttl, u.keys...)
	case 2:
		l, err = u.client.AcquireAll(ctx, ttl, u.keys...)
	default:
		wants, done := u.wants(ctx, u.keys...)
		l, err = u.client.AcquireAny(wants, ttl, u.keys...)
		done()
	}
	if !u.check("acquire any", began, err) {
		return
	}
	b := u.ledger.lock(u.who, u.machine, l)
	if u.IntN(4) == 0 {
		kept, stop := l.KeepAlive(u.ctx)
		u.ledger.keep(b, kept)
		u.work(kept, 2*ttl)
		stop()
	} else {
		u.hold(ttl)
	}
	u.finish(l, b)
}

// all is AcquireAll.
func (u *caller) all() {
	ctx, cancel := u.limited()
	defer cancel()
	ttl, keys := u.ttl(), u.some()
	acquire := u.client.AcquireAll
	if u.IntN(3) == 0 {
		acquire = u.client.TryAcquireAll
	}
	began := time.Now()
	if l, err := acquire(ctx, ttl, keys...); u.check("acquire all", began, err) {
		b := u.ledger.lock(u.who, u.machine, l)
		u.hold(ttl)
		u.finish(l, b)
	}
}

// do is Do. Its function may take longer than the TTL.
func (u *caller) do() {
	ctx, cancel := u.limited()
	defer cancel()
	key, ttl := u.key(), u.ttl()
	ctx, done := u.wants(ctx, key)
	began := time.Now()
	err := u.client.Do(ctx, key, ttl, func(ctx context.Context) error {
		done()
		b := u.ledger.granted(&holding{who: u.who, keys: []string{key}, machine: u.machine, remaining: func() time.Duration {
			if ctx.Err() != nil {
				return 0
			}
			return 1
		}})
		defer u.ledger.gone(b)
		u.work(ctx, 2*ttl)
		return nil
	})
	done()
	u.check("do", began, err)
}

// work is hold with a context of the lock.
func (u *caller) work(ctx context.Context, most time.Duration) {
	d := u.N(10 * time.Millisecond)
	if u.IntN(3) == 0 {
		d = u.N(most)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// keepAlive keeps a lock alive.
func (u *caller) keepAlive() {
	ttl := u.ttl()
	l, b := u.acquire(ttl, false)
	if b == nil {
		return
	}
	ctx, stop := l.KeepAlive(u.ctx)
	u.ledger.keep(b, ctx)
	u.work(ctx, 2*ttl)
	if u.IntN(2) == 0 {
		stop()
	}
	u.finish(l, b)
}

// extend extends a lock, a few times.
func (u *caller) extend() {
	ttl := u.ttl()
	l, b := u.acquire(ttl, u.IntN(2) == 0)
	if b == nil {
		return
	}
	for range 1 + u.IntN(3) {
		u.hold(ttl)
		ttl = u.ttl()
		ctx, cancel := u.limited()
		began := time.Now()
		u.check("extend", began, l.Extend(ctx, ttl))
		cancel()
	}
	u.finish(l, b)
}

// attach gives the lock to another client, for a release, or an extension before it.
func (u *caller) attach() {
	ttl := u.ttl()
	l, b := u.acquire(ttl, false)
	if b == nil {
		return
	}
	u.ledger.share(b)
	key, token, left := l.Key(), l.Token(), l.Remaining()
	if left < time.Millisecond {
		u.finish(l, b)
		return
	}
	until := time.Now().Add(left)
	other := u.others[u.IntN(len(u.others))].Load()
	if other == nil {
		other = u.client
	}
	ctx, cancel := u.limited()
	defer cancel()
	since := u.began // no bound: the other client may be new, and its hooks may block
	attached, err := other.Attach(ctx, key, token, until)
	if u.check("attach", since, err) {
		if u.IntN(2) == 0 {
			u.check("extend", since, attached.Extend(ctx, ttl))
		}
		u.sleep(u.N(20 * time.Millisecond))
		u.check("release", since, attached.Release(context.Background()))
	}
	if u.IntN(2) == 0 { // else it forgets its own handle
		u.finish(l, b)
	}
}

// op acquires and releases by Submit.
func (u *caller) op() {
	key := u.key()
	op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte(key), TTL: u.ttl()}
	if !u.submit(op) {
		return
	}
	until := time.Now().Add(op.Remaining())
	b := u.ledger.granted(&holding{who: u.who, keys: []string{key}, machine: u.machine, remaining: func() time.Duration {
		return max(0, time.Until(until))
	}})
	if token := op.Fence(); token != 0 {
		u.ledger.fenced(b, token)
	}
	u.hold(op.TTL)
	u.ledger.gone(b)
	op.Kind = redlock.OpRelease
	u.submit(op)
}

// submit waits for an operation.
func (u *caller) submit(op *redlock.Op) (won bool) {
	done := make(chan struct{})
	op.Done = func(*redlock.Op) { close(done) }
	began := time.Now()
	if !u.check("submit", began, u.client.Submit(op)) {
		return false
	}
	if op.Kind == redlock.OpAcquire && u.IntN(6) == 0 && u.client.Cancel(op) {
		return false
	}
	<-done
	return u.check("op", began, op.Err())
}

// forget never gives the lock back.
func (u *caller) forget() {
	if u.IntN(4) == 0 && !u.plan.busy {
		u.acquire(50*time.Millisecond+u.N(500*time.Millisecond), false)
	}
}
