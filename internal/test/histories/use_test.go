package histories

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/client/engine"
	leases "github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/internal/client/texts"
)

// form is a call that acquires a lock.
type form struct {
	what  string
	waits bool // without it, or of all keys, it is not known as one who wants a key
	all   bool
	reads bool // others may have the lock too
	call  func(c *redlock.Client, ctx context.Context, ttl time.Duration, keys ...string) (redlock.Lock, error)
}

var (
	acquireOne    = form{what: "acquire", waits: true, call: ofOne((*redlock.Client).Acquire)}
	tryOne        = form{what: "try", call: ofOne((*redlock.Client).TryAcquire)}
	acquireShared = form{what: "acquire", waits: true, reads: true, call: ofOne((*redlock.Client).AcquireShared)}
	tryShared     = form{what: "try", reads: true, call: ofOne((*redlock.Client).TryAcquireShared)}
	acquireAll    = form{what: "acquire all", all: true, call: (*redlock.Client).AcquireAll}
	tryAll        = form{what: "acquire all", all: true, call: (*redlock.Client).TryAcquireAll}
	acquireAny    = form{what: "acquire any", waits: true, call: (*redlock.Client).AcquireAny}
	tryAny        = form{what: "acquire any", call: (*redlock.Client).TryAcquireAny}
)

func ofOne(f func(*redlock.Client, context.Context, string, time.Duration) (redlock.Lock, error)) func(*redlock.Client, context.Context, time.Duration, ...string) (redlock.Lock, error) {
	return func(c *redlock.Client, ctx context.Context, ttl time.Duration, keys ...string) (redlock.Lock, error) {
		return f(c, ctx, keys[0], ttl)
	}
}

// get acquires a lock; nil: it has none.
func (u *caller) get(ctx context.Context, f form, ttl time.Duration, keys ...string) (redlock.Lock, *holding) {
	began, wants, collected := time.Now(), u.wants, func() {}
	if f.all {
		collected = u.watch.collects(keys)
	}
	if !f.waits {
		wants = func(ctx context.Context, _ ...string) (context.Context, func()) { return u.stall(ctx, nil) }
	}
	calling, done := wants(ctx, keys...)
	l, err := f.call(u.client, calling, ttl, keys...)
	done()
	collected()
	u.fact(f.what, began, err, keys...)
	if !u.check(f.what, began, err) {
		return l, nil
	}
	return l, u.ledger.lock(u.who, u.machine, u.process, l, f.reads)
}

// limitedly is get within a time.
func (u *caller) limitedly(f form, ttl time.Duration, keys ...string) (redlock.Lock, *holding) {
	ctx, cancel := u.limited()
	defer cancel()
	return u.get(ctx, f, ttl, keys...)
}

// use uses a lock once, in one of all ways.
func (u *caller) use() {
	switch {
	case u.permits && u.IntN(8) > 0:
		u.choose()
	case u.shares && u.IntN(3) > 0:
		u.once([]form{acquireShared, acquireShared, acquireShared, tryShared}[u.IntN(4)], u.key())
	case u.stir.operators > 0 && u.IntN(8) == 0:
		u.hang()
	case u.plan.busy && u.IntN(20) > 0:
		u.once(acquireOne, u.key())
	default:
		switch u.IntN(10) {
		case 0:
			u.once(tryOne, u.key())
		case 1:
			u.once([]form{acquireAll, acquireAll, tryAll}[u.IntN(3)], u.some()...)
		case 2:
			u.do()
		case 3:
			u.attach()
		case 4:
			u.op()
		case 5:
			u.forget()
		default:
			u.once(acquireOne, u.key())
		}
	}
}

// choose is a call for any of all keys, or now and then for all of them.
func (u *caller) choose() {
	if u.IntN(8) == 0 {
		ctx, cancel := u.limited()
		defer cancel()
		ttl := u.ttl()
		u.doing("do any", u.keys, ttl, 0, func(f func(context.Context) error) error { return u.client.DoAny(ctx, ttl, u.keys, f) }, func() {})
		return
	}
	u.once([]form{acquireAny, acquireAny, acquireAny, acquireAny, acquireAny, tryAny, acquireAll}[u.IntN(7)], u.keys...)
}

// once holds a lock, perhaps kept alive or extended, and gives it back.
func (u *caller) once(f form, keys ...string) {
	ttl := u.ttl()
	l, b := u.limitedly(f, ttl, keys...)
	if b == nil {
		return
	}
	if u.IntN(8) == 0 {
		_ = l.Token()
	}
	n := u.IntN(8)
	if u.plan.busy && u.IntN(20) > 0 {
		n = 8
	}
	switch n {
	case 0, 1:
		stop := u.kept(l, b, ttl)
		if n == 0 {
			stop()
		}
	case 2:
		for range 1 + u.IntN(3) {
			u.hold(ttl, l)
			ttl = u.ttl()
			ctx, cancel := u.limited()
			began := time.Now()
			u.check("extend", began, l.Extend(ctx, ttl))
			cancel()
		}
	default:
		u.hold(ttl, l)
	}
	u.finish(l, b)
}

// hang holds the first key for long. If an operator frees it, the holder finds its way back soon, and
// gives back what others may have had since.
func (u *caller) hang() {
	l, b := u.get(u.ctx, acquireOne, maxTTL, u.keys[0])
	if b == nil {
		return
	}
	for end := time.Now().Add(u.N(maxTTL)); time.Now().Before(end) && !u.owners.isFreed(u.keys[0], b) && u.sleep(10*time.Millisecond); {
	}
	u.sleep(u.N(200 * time.Millisecond))
	u.finish(l, b)
}

func (u *caller) pass() {
	ctx, cancel := context.WithTimeout(u.ctx, 30*time.Millisecond+u.N(970*time.Millisecond))
	defer cancel()
	if l, b := u.get(ctx, acquireOne, u.ttl(), u.keys[0]); b != nil {
		u.sleep(u.N(20 * time.Millisecond))
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
			u.discard(l, b)
			return
		case 1:
			cancel()
		case 2:
			time.AfterFunc(u.N(time.Millisecond), cancel)
		}
		began := time.Now()
		u.owners.leaves(b)
		err := l.Release(ctx)
		if errors.Is(err, redlock.ErrBusy) {
			u.fail("%s: a release of %v is refused: %v", u.who, b.keys, err)
		}
		if ends, _ := u.process.isEnding(); err != nil && ends || errors.Is(err, redlock.ErrClosed) {
			u.owners.stays(b)
		}
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
	u.discard(l, b)
}

// discard is ReleaseAsync. A client that closes may send nothing.
func (u *caller) discard(l redlock.Lock, b *holding) {
	u.owners.leaves(b)
	l.ReleaseAsync()
	if ends, _ := u.process.isEnding(); ends {
		u.owners.stays(b)
	}
}

// do is Do. Its function may take longer than the TTL.
func (u *caller) do() {
	ctx, cancel := u.limited()
	defer cancel()
	key, ttl := u.key(), u.ttl()
	ctx, done := u.wantsTo(ctx, u.process, key)
	defer done()
	client, atLeast := u.client, time.Duration(0)
	if u.IntN(4) == 0 {
		atLeast = 1 + u.N(maxTTL)
		client = client.With(redlock.Options{AtLeast: atLeast})
	}
	u.doing("do", []string{key}, ttl, atLeast, func(f func(context.Context) error) error { return client.Do(ctx, key, ttl, f) }, done)
}

// doing is a call of Do for a lock on one of some keys. It calls begun when it has the lock. When
// its client closes its release is not sent, unless by Shutdown.
func (u *caller) doing(what string, keys []string, ttl, atLeast time.Duration, do func(func(context.Context) error) error, begun func()) {
	began := time.Now()
	var b *holding
	err := do(func(ctx context.Context) error {
		term := time.Now().Add(atLeast)
		begun()
		around := leases.Around(ctx, func(*engine.Engine) bool { return true })
		if len(around) == 0 {
			return nil // it is over
		}
		state := around[0]
		b = u.ledger.granted(&holding{
			who: u.who, keys: []string{state.Key}, machine: u.machine, process: u.process,
			digest: texts.Digest([]byte(state.Token.String() + u.process.tail)),
			remaining: func() time.Duration {
				if ctx.Err() != nil {
					return 0
				}
				return 1
			},
		})
		u.work(ctx, 2*ttl)
		u.ledger.gone(b)
		u.owners.staysFor(b, time.Until(term))
		return nil
	})
	if ends, graceful := u.process.isEnding(); b != nil && ends && !graceful {
		u.owners.stays(b)
	}
	u.fact(what, began, err, keys...)
	u.check(what, began, err)
}

// work is hold with a context of the lock.
func (u *caller) work(ctx context.Context, most time.Duration) {
	d := u.N(10 * time.Millisecond)
	if u.IntN(3) == 0 {
		d = u.N(most)
	}
	rest(ctx, d)
}

// kept keeps a lock alive for a while.
func (u *caller) kept(l redlock.Lock, b *holding, ttl time.Duration) (stop func()) {
	ctx, stop := l.KeepAlive(u.ctx)
	u.ledger.keep(b, ctx)
	u.work(ctx, 2*ttl)
	return stop
}

// attach gives the lock to another client, for a release, or an extension before it.
func (u *caller) attach() {
	ttl := u.ttl()
	l, b := u.limitedly(acquireOne, ttl, u.key())
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
	u.owners.attached(key, token, other)
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

func (u *caller) op() {
	key := u.key()
	op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte(key), TTL: u.ttl()}
	if won, _ := u.submit(op); !won {
		return
	}
	until := time.Now().Add(op.Remaining())
	b := u.ledger.granted(&holding{
		who: u.who, keys: []string{key}, machine: u.machine, process: u.process, digest: texts.Digest([]byte(op.Token())),
		remaining: func() time.Duration { return max(0, time.Until(until)) },
	})
	if token := op.Fence(); token != 0 {
		u.ledger.fenced(b, token)
	}
	u.hold(op.TTL, redlock.Lock{})
	u.ledger.gone(b)
	u.owners.leaves(b)
	op.Kind = redlock.OpRelease
	if _, sent := u.submit(op); !sent {
		u.owners.stays(b)
	}
}

// submit waits for an operation. It may not be sent, or it is cancelled.
func (u *caller) submit(op *redlock.Op) (won, sent bool) {
	done := make(chan struct{})
	op.Done = func(*redlock.Op) { close(done) }
	if op.Kind == redlock.OpAcquire && u.plan.stalls {
		defer u.process.give()() // a hook may keep Done from being called
	}
	began := time.Now()
	err := u.client.Submit(op)
	if op.Kind == redlock.OpRelease && errors.Is(err, redlock.ErrBusy) {
		u.fail("%s: a release of %s is refused: %v", u.who, op.Key, err)
	}
	if !u.check("submit", began, err) {
		return false, false
	}
	if op.Kind == redlock.OpAcquire && u.IntN(6) == 0 && u.client.Cancel(op) {
		return false, true
	}
	<-done
	u.fact("op", began, op.Err(), string(op.Key))
	return u.check("op", began, op.Err()), !errors.Is(op.Err(), redlock.ErrClosed)
}

// forget never gives the lock back.
func (u *caller) forget() {
	if u.IntN(4) == 0 && !u.plan.busy {
		u.limitedly(acquireOne, 50*time.Millisecond+u.N(500*time.Millisecond), u.key())
	}
}
