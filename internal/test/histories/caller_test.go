package histories

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
	"github.com/redlock-go/redlock/quorum"
)

type caller struct {
	*history
	random
	plan    *clientPlan
	client  *redlock.Client
	process *process
	machine *virtual.Machine
	who     string
	ctx     context.Context // of the session
	began   time.Time       // the session
	dice    *dice           // nil: its contexts do not block
	brief   bool            // its TTLs are short
}

// sessions is a client that comes and goes.
func (h *history) sessions(i int) {
	rng, p := h.rng(2, i), &h.clients[i]
	for n := 0; n < p.sessions && h.pause(rng.N(300*time.Millisecond)); n++ {
		long := time.Hour
		if n+1 < p.sessions {
			long = time.Second + rng.N(8*time.Second)
		}
		ctx, cancel := context.WithTimeout(h.ctx, long)
		h.session(ctx, i, n, rng)
		cancel()
	}
}

func (h *history) session(ctx context.Context, i, n int, rng random) {
	p := &h.clients[i]
	cfg := p.settings
	of := h.owners.process(fmt.Sprintf("%d.%d", i, n), &cfg)
	var d *dice
	if p.stalls {
		d = h.stall(&cfg, h.rng(9, i, n))
	}
	m, err := h.connect(of, i, cfg, !p.noPushes)
	switch {
	case err != nil && time.Since(h.troubled()) < time.Second: // nodes refuse its probes
		h.log("New: %v", err)
		return
	case err != nil:
		h.fail("New: %v", err)
		return
	}
	c := of.client
	if !p.vain {
		h.others[i].Store(c)
	}
	h.log("client %d.%d begins", i, n)
	var callers sync.WaitGroup
	for j := range p.callers + h.stir.passers {
		callers.Go(func() {
			u := &caller{
				history: h, random: h.rng(4, i, n, j), plan: p, client: c, process: of, machine: m, dice: d,
				who: fmt.Sprintf("%d.%d.%d", i, n, j), ctx: ctx, began: time.Now(), brief: h.stir.brief && j%2 == 1,
			}
			for u.sleep(u.gap()) {
				if j < p.callers {
					u.use()
				} else {
					u.pass()
				}
			}
		})
	}
	switch rng.IntN(3) { // closed under its callers, or after them
	case 0:
		<-ctx.Done()
		of.end(false, c.Close)
	case 1:
		<-ctx.Done()
		of.end(true, func() error {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			return c.Shutdown(ctx)
		})
	}
	callers.Wait()
	of.end(false, c.Close)
	if s := c.Stats(); s.Waiting+s.InFlight+s.InLine+s.KeptAlive != 0 {
		h.fail("client %d.%d is closed with %d operations that wait, %d in flight, %d callers in line, %d locks kept alive",
			i, n, s.Waiting, s.InFlight, s.InLine, s.KeptAlive)
	}
	if h.changes != nil {
		h.changes.leave(i)
	}
	h.log("client %d.%d has ended", i, n)
}

// wants notes that the caller waits, until it is called back. A hopeless one keeps no lock free.
func (u *caller) wants(ctx context.Context, keys ...string) (_ context.Context, done func()) {
	return u.wantsTo(ctx, nil, keys...)
}

func (u *caller) wantsTo(ctx context.Context, do *process, keys ...string) (_ context.Context, done func()) {
	if u.plan.vain {
		return u.stall(ctx, do)
	}
	ctx, over := u.watch.wants(ctx, keys...)
	ctx, calm := u.stall(ctx, do)
	return ctx, func() {
		calm()
		over()
	}
}

// gap is between two uses. It is never 0: an immediate failure takes no time, and an hour of these
// would not end.
func (u *caller) gap() time.Duration {
	if u.plan.busy {
		return 100 * time.Microsecond
	}
	return time.Millisecond + u.N(200*time.Millisecond)
}

// sleep is pause within the session.
func (u *caller) sleep(d time.Duration) (fine bool) { return rest(u.ctx, d) }

// key is one of the history's, the first where its client is busy.
func (u *caller) key() string {
	if u.plan.busy {
		return u.keys[0]
	}
	return u.keys[u.IntN(len(u.keys))]
}

func (u *caller) some() (keys []string) {
	for _, i := range u.Perm(len(u.keys))[:1+u.IntN(len(u.keys))] {
		keys = append(keys, u.keys[i])
	}
	return keys
}

func (u *caller) ttl() time.Duration {
	if u.brief {
		return 50*time.Millisecond + u.N(450*time.Millisecond)
	}
	if u.IntN(2) == 0 {
		return maxTTL
	}
	return 50*time.Millisecond + u.N(maxTTL-50*time.Millisecond)
}

// limited is a context that ends some time; often at once, or while it waits.
func (u *caller) limited() (context.Context, context.CancelFunc) {
	switch u.IntN(8) {
	case 0:
		return context.WithTimeout(u.ctx, u.N(2*time.Millisecond))
	case 1:
		return context.WithTimeout(u.ctx, u.N(time.Second))
	}
	return context.WithTimeout(u.ctx, 3*time.Second+u.N(5*time.Second))
}

// hold is the work under a lock: none, short, or longer than the lock. Now and then it ends where another wants the lock.
func (u *caller) hold(ttl time.Duration, l redlock.Lock) {
	if u.IntN(5) == 0 && !u.plan.busy {
		select {
		case <-l.Wanted():
		case <-time.After(u.N(ttl)):
		case <-u.ctx.Done():
		}
		return
	}
	switch n := u.IntN(10); {
	case n < 3:
	case n == 3 && !u.plan.busy:
		u.sleep(u.N(ttl))
	case n == 4 && !u.plan.busy:
		u.sleep(ttl + u.N(ttl/4))
	default:
		u.sleep(u.N(20 * time.Millisecond))
	}
}

var expected = []error{
	redlock.ErrTaken, redlock.ErrSplit, redlock.ErrNoQuorum, redlock.ErrNoAnswer, redlock.ErrExpired, redlock.ErrBusy, redlock.ErrClosed,
	redlock.ErrNotHeld, context.Canceled, context.DeadlineExceeded,
}

// answered is how long a call without a wait may take while all nodes answer.
const answered = 500 * time.Millisecond

// settled is how long after its begin a client's callers may hear that it had no quorum: new to it, the nodes have no vote
// before they have been up for maxTTL by its clock, and their uptime is one in whole seconds. Its lines speak of that for
// a second more, to callers who have not asked themselves.
var settled = time.Second + quorum.Drift(maxTTL)

// late is how late votes may be judged.
const late = 250 * time.Millisecond

// fact requires of the error of an acquire begun then that "taken" was a fact: some node had one of
// the keys meanwhile or in the second before. A suspended machine learns late what was.
func (u *caller) fact(what string, began time.Time, err error, keys ...string) {
	if errors.Is(err, redlock.ErrTaken) && u.machine.Slept() == 0 && !u.owners.taken(began, keys...) {
		u.fail("%s: %s of %v took %v, and no node had them: %v", u.who, what, keys, time.Since(began), err)
	}
}

// check looks at the error of a call begun then. One with a limited number of attempts may give up
// before an attempt is complete. Where all nodes answer no call fails for want of them, and each is
// answered soon.
func (u *caller) check(what string, began time.Time, err error) (won bool) {
	if !u.plan.vain && u.watch.calmSince(began) && began.Sub(u.began) > settled {
		took := time.Since(began)
		switch what {
		case "acquire", "acquire all", "acquire any", "do", "do any": // they wait
			took = 0
		}
		if took > answered && !u.plan.stalls {
			u.fail("%s: %s took %v while all nodes answer: %v", u.who, what, took, err)
		}
		if errors.Is(err, redlock.ErrNoQuorum) {
			u.fail("%s: %s while all nodes answer: %v", u.who, what, err)
		}
	}
	var gaveUp *redlock.AcquireError
	if u.plan.settings.Retry.Attempts > 0 && errors.As(err, &gaveUp) && gaveUp.Ctx == nil && gaveUp.Last == redlock.ErrNoAnswer {
		return false
	}
	for _, e := range expected {
		if err == nil || errors.Is(err, e) {
			return err == nil
		}
	}
	u.fail("%s: %s: %v", u.who, what, err)
	return false
}
