package engine

import (
	"fmt"
	"time"

	"github.com/redlock-go/redlock/internal/renewal"
	"github.com/redlock-go/redlock/quorum"
)

// keeperLate is how late the turn of a keeper may be.
const keeperLate = 3 * time.Millisecond

// simKeeper is the keeper of a client. What that of package group does with a goroutine,
// a timer and locks, this one does with events. What it decides, package renewal does.
type simKeeper struct {
	client   *client
	schedule renewal.Schedule[*kept]
	inbox    []*renewing
	at       time.Duration // of its next turn, or 0
}

// kept is a lock that is kept alive, the entry of a keeper.
type kept struct {
	renewal.Lock
	holder   *holder
	locks    []*lock
	validity *validity
	place    int
	limit    time.Duration
	live     bool // its context has not ended
}

func (e *kept) SetPlace(place int) { e.place = place }
func (e *kept) Place() int         { return e.place }

// renewing is a renewal that is under way: an extend for each key.
type renewing struct {
	keeper  *simKeeper
	kept    *kept
	holder  *holder
	parts   []*renewPart
	left    int // parts without a result
	seq     uint16
	began   time.Duration
	asked   time.Duration
	extends *renewal.Extension
	of      *validity
}

type renewPart struct {
	Op
	of   *renewing
	lock *lock
}

// Complete implements Completion. The driver calls it.
func (p *renewPart) Complete(op *Op) {
	r := p.of
	c := r.keeper.client
	c.pending--
	c.world.check.votes(c, p.lock, op, r.asked)
	if r.left--; r.left == 0 {
		r.keeper.inbox = append(r.keeper.inbox, r)
		r.keeper.wake(0)
	}
}

// wake has a turn begin in d, and a while.
func (k *simKeeper) wake(d time.Duration) {
	w := k.client.world
	late := w.between(0, 200*time.Microsecond)
	if w.chance(10) {
		late = w.between(0, keeperLate*3/4)
	}
	at := w.now() + d + late
	if k.at != 0 && k.at <= at {
		return
	}
	k.at = at
	k.client.after(d+late, func() {
		if k.at != 0 && k.at <= w.now() {
			k.at = 0
			k.turn()
		}
	})
}

// await has a turn begin with the first event.
func (k *simKeeper) await() {
	if k.schedule.Len() > 0 {
		_, at := k.schedule.First()
		k.wake(max(0, k.client.clock.truth(at)-k.client.world.now()) + 1)
	}
}

// add begins to keep a lock alive.
func (k *simKeeper) add(h *holder, limit time.Duration) *kept {
	e := &kept{holder: h, locks: h.locks, validity: h.validity, place: renewal.Nowhere, limit: limit, live: true}
	k.schedule.Set(e, e.Start(e.held(), h.validity.began(), limit))
	k.await()
	return e
}

// review gives a lock its next event anew.
func (k *simKeeper) review(e *kept, extended bool) {
	if e != nil && e.live && e.validity.releases == 0 && !k.client.world.rules.deafKeeper {
		k.schedule.Set(e, e.Review(e.held(), k.schedule.At(e), k.client.clock.Now(), extended))
		k.await()
	}
}

// end ends that a lock is kept alive, and its context.
func (k *simKeeper) end(e *kept, why renewal.Action) {
	if !e.live {
		k.schedule.Remove(e)
		return
	}
	if e.live = false; why == renewal.Stop && k.client.world.rules.renewsStopped {
		e.holder.ended(why)
		return
	}
	k.schedule.Remove(e)
	e.End()
	e.holder.ended(why)
}

func (k *simKeeper) close() {
	for k.schedule.Len() > 0 {
		e, _ := k.schedule.First()
		k.schedule.Remove(e)
		e.live = false
	}
}

// turn is that of package group's keeper.
func (k *simKeeper) turn() {
	c := k.client
	if c.dead {
		return
	}
	now := c.clock.Now()
	inbox := k.inbox
	k.inbox = nil
	for _, r := range inbox {
		k.result(r, now)
	}
	var ops Ops
	n := 0
	for k.schedule.Len() > 0 && !c.world.check.failed() {
		e, at := k.schedule.First()
		if at > now {
			break
		}
		if n++; n > 1000 {
			c.world.check.fail("stuck", "a keeper's turn does not end")
		}
		action, next := e.Event(e.held(), now)
		if c.world.rules.noDeadline && action == renewal.Expire {
			action, next = renewal.Wait, now+time.Hour
		}
		if c.world.rules.neverRenews && action == renewal.Renew {
			action, next = renewal.Wait, e.validity.Until()
		}
		if action == renewal.Renew {
			next = k.renew(e, now, &ops)
		}
		k.do(e, action, next)
	}
	if err := c.engine.Enqueue(ops); err != nil {
		c.world.check.fail("once", "Enqueue: "+err.Error())
	}
	c.engine.Drive()
	k.await()
}

func (k *simKeeper) do(e *kept, a renewal.Action, next time.Duration) {
	if a == renewal.Wait || a == renewal.Renew {
		k.schedule.Set(e, next)
		return
	}
	k.end(e, a)
}

func (e *kept) held() renewal.Held {
	v := e.validity
	return renewal.Held{Until: v.until(), TTL: v.TTL(), Released: v.releases > 0}
}

// renew begins a renewal.
func (k *simKeeper) renew(e *kept, now time.Duration, ops *Ops) (next time.Duration) {
	c, h, w := k.client, e.holder, k.client.world
	if !w.check.renewing(e, now) {
		return never
	}
	r := &renewing{keeper: k, kept: e, holder: h, left: len(e.locks), began: now, asked: w.now(), of: e.validity}
	ttl := r.of.TTL()
	r.extends = r.of.Extending(ttl, quorum.Until(now, ttl))
	h.believe()
	for _, l := range e.locks {
		p := &renewPart{of: r, lock: l}
		p.Kind, p.Key, p.Token, p.TTL = Extend, fmt.Appendf(nil, "key-%d", l.key), tokenOf(l.token()), ttl
		p.Done, p.Prompt = p, true
		if err := c.engine.Check(&p.Op); err != nil {
			w.check.fail("once", "Check: "+err.Error())
		}
		p.Timeout = min(p.Timeout, max((r.of.Until()-now)/2, 2*time.Millisecond))
		r.parts = append(r.parts, p)
		l.extends = append(l.extends, w.now())
		w.note("renew", c.index, l.key, l.number)
		l.kept = true
		c.pending++
		ops.Add(&p.Op)
	}
	w.check.renewals++
	r.seq, next = e.Begin(e.held())
	return next
}

// result takes in what became of a renewal.
func (k *simKeeper) result(r *renewing, now time.Duration) {
	var err error
	for _, p := range r.parts {
		err = Joint(err, p.Err)
	}
	result := resultOf(err)
	if k.client.world.rules.countsFailed && result == renewal.Unknown {
		result = renewal.Won
	}
	r.of.Extended(r.extends, result)
	renewal.Drop(r.extends)
	h := r.holder
	if h.validity == r.of {
		h.extended(result)
	}
	e := r.kept
	if !e.live || !e.Awaits(r.seq) {
		return
	}
	action, next := e.Result(result, e.held(), r.began, now, k.client.world.Float64())
	k.do(e, action, next)
}
