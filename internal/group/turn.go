package group

import (
	"math/rand/v2"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/renewal"
	"github.com/redlock-go/redlock/quorum"
)

// turn does what is due and returns how long it is to the next turn.
func (k *keeper) turn() (pause time.Duration) {
	k.group.clock.Sync()
	now := k.group.clock.Now()
	k.mu.Lock()
	for r := k.inbox.take(); r != nil; {
		next := r.next
		k.result(r, now)
		r = next
	}
	var ops engine.Ops
	for n := 0; n < maxRenewals && k.schedule.Len() > 0; n++ {
		e, at := k.schedule.First()
		if at > now {
			break
		}
		k.event(e, now, &ops)
	}
	_ = k.group.engine.Enqueue(ops) // ErrClosed: close has ended, or will end, all entries
	pause = time.Hour
	if k.schedule.Len() > 0 {
		_, at := k.schedule.First()
		pause = max(0, min(at-now, syncEvery))
	}
	k.unlockAndTell()
	k.group.engine.Drive()
	return pause
}

// event does what is due for an entry, and gives it its next event.
func (k *keeper) event(e *entry, now time.Duration, ops *engine.Ops) {
	s, ok := e.lease.get(e.life)
	if action, next := e.Event(held(s, ok), now); action == renewal.Renew {
		k.renew(e, &s, now, ops)
	} else {
		k.do(e, &s, action, next)
	}
}

// do waits for the next event of an entry, or ends it.
func (k *keeper) do(e *entry, s *state, a renewal.Action, next time.Duration) {
	switch a {
	case renewal.Wait:
		k.schedule.Set(e, next)
	case renewal.Stop: // and about to be stopped
		k.endEntry(e, engine.ErrStopped)
	case renewal.Limit:
		k.endEntry(e, engine.ErrMaxHold)
	case renewal.Expire:
		k.endEntry(e, k.causeOf(e, s))
	case renewal.Lose:
		k.endEntry(e, engine.ErrNotHeld)
	}
}

// causeOf is why validity has come to its end. It may be 0 because a release was asked
// for, whose caller is about to stop the entry; or because the lock was found to be lost,
// by an extension of its holder.
func (k *keeper) causeOf(e *entry, s *state) error {
	switch err := k.failing[e]; {
	case s.released:
		return engine.ErrStopped
	case s.until == 0:
		return engine.ErrNotHeld
	case err != nil:
		return err
	}
	return engine.ErrExpired
}

// endEntry ends an entry. mu is held.
func (k *keeper) endEntry(e *entry, cause error) {
	k.schedule.Remove(e)
	delete(k.failing, e)
	s, _ := e.lease.get(e.life)
	e.lease.unkeep(e.life)
	end := ending{e.end, e.user, cause, ""}
	if e.user && cause == engine.ErrStopped {
		end.end = nil
	}
	if cause != engine.ErrStopped && cause != engine.ErrMaxHold && cause != engine.ErrClosed {
		k.gone = append(k.gone, s)
		if k.lost++; e.lease.reportLoss(e.life) {
			end.lost = s.key
		}
	}
	if end.end != nil || end.lost != "" {
		k.endings = append(k.endings, end)
	}
	e.End()
	e.lease, e.end = nil, nil
	if e.user {
		k.unused.Put(e)
	}
}

// unlockAndTell gives mu up and tells what has ended. To end a context runs no user code;
// the rest is called by the goroutine of callbacks.
func (k *keeper) unlockAndTell() {
	endings, news, gone := k.endings, k.reports, k.gone
	k.endings, k.reports, k.gone = nil, nil, nil
	for _, e := range endings { // still under mu: Kept.Err relies on it that what has ended is told
		if e.end != nil && !e.user {
			e.end(e.cause)
		}
	}
	k.mu.Unlock()
	for i := range gone {
		k.group.lines.freed(&gone[i])
	}
	for _, e := range endings {
		if e.end != nil && e.user {
			news = append(news, func() { e.end(e.cause) })
		}
		if f := k.group.cfg.OnLockLost; f != nil && e.lost != "" {
			news = append(news, func() { f(e.lost, e.cause) })
		}
	}
	if len(news) > 0 {
		k.group.engine.Announce(news)
	}
}

// renew begins a renewal.
func (k *keeper) renew(e *entry, s *state, now time.Duration, ops *engine.Ops) {
	r, _ := k.spare.Get().(*renewing)
	if r == nil {
		r = &renewing{inbox: &k.inbox}
	}
	if err := r.prepare(k.group, s, now); err != nil { // a TTL that MaxTTL forbids, of an attached lock
		k.endEntry(e, err)
		return
	}
	r.extension = e.lease.extending(e.life, r.ttl(), quorum.Until(now, r.ttl()))
	if r.extension == nil {
		k.endEntry(e, engine.ErrStopped)
		return
	}
	seq, next := e.Begin(held(*s, true))
	r.entry, r.seq, r.lease, r.life, r.began = e, seq, e.lease, e.life, now
	r.about(e, r.extension)
	r.add(ops)
	k.schedule.Set(e, next)
}

// result takes in what became of a renewal. mu is held.
func (k *keeper) result(r *renewing, now time.Duration) {
	err := r.result()
	r.lease.extended(r.life, r.extension, resultOf(false, err))
	e := r.entry
	if e.is(r.lease, r.life) && e.Awaits(r.seq) {
		k.renewed(e, r, err, now)
	}
	k.report(r, err)
	r.clear()
	k.spare.Put(r)
}

// renewed gives an entry its next event behind a renewal.
func (k *keeper) renewed(e *entry, r *renewing, err error, now time.Duration) {
	s, ok := e.lease.get(e.life)
	action, next := e.Result(resultOf(false, err), held(s, ok), r.began, now, rand.Float64())
	if action == renewal.Wait && err == engine.ErrClosed {
		k.endEntry(e, err)
		return
	}
	if delete(k.failing, e); err != nil {
		k.failing[e] = err
	}
	k.do(e, &s, action, next)
}

// report has a renewal reported as an attempt, and counts it if it has several keys.
func (k *keeper) report(r *renewing, err error) {
	decides := &r.parts[0].Op
	if len(r.parts) > 1 {
		k.group.engine.Note(engine.Extend, bare(err))
		for i := range r.parts {
			if op := &r.parts[i].Op; op.Err != nil && op.Err == bare(err) {
				decides = op
				break
			}
		}
	}
	if k.group.cfg.OnAttempt == nil {
		return
	}
	key, took, tally := string(r.parts[0].Key), decides.Took(k.group.clock.Now()), decides.Tally
	k.reports = append(k.reports, func() { k.group.cfg.OnAttempt(ofOp, engine.Extend, key, took, tally, err) })
}
