package holding

import (
	"cmp"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/rules/renewal"
	"github.com/redlock-go/redlock/internal/wire/token"
	"github.com/redlock-go/redlock/quorum"
)

// Compound is one operation on a lock: a part for each of its keys. The parts have one result. The site of the first
// counts and reports it.
//
// It is the only place where parts are counted. Do waits for them. A renewal hears of its last part (renewing), and
// an operation without a waiting caller asks for the next part when one has ended (Submit).
type Compound struct {
	one   [1]Part
	more  []Part // in place of one, for several keys; the parts of one site stand together
	turns []Part // the parts in the order of asking, where it is another one
	asked int    // how many parts nodes were asked for, from the first on
}

// Part is the call for one key.
type Part struct {
	*engine.Call
	Site Site
}

// Compose makes c an operation of a kind on a lock, until Free; or it returns an error of wrong arguments. tail is
// the client's.
func (c *Compound) Compose(home Site, kind engine.Kind, s *State, ttl time.Duration, tail string) (err error) {
	c.more, c.turns = c.more[:0], nil
	keys := s.Several()
	if keys == nil {
		p := &c.one[0]
		p.Site = home
		if p.Call, err = home.Engine().Call(kind, s.Key, ttl); err == nil {
			p.Tail, p.Shared = s.Tail(tail), s.Shared
		}
		return err
	}
	for i, key := range keys {
		p := Part{Site: s.More.Site(i, home)}
		if p.Call, err = p.Site.Engine().Call(kind, key, ttl); err != nil {
			free(c.more)
			return err
		}
		p.OfSet, p.Tail, p.Shared = true, s.Tail(tail), s.Shared
		c.more = append(c.more, p)
	}
	return nil
}

// Take makes c an operation of parts of its user's.
func (c *Compound) Take(parts ...Part) {
	c.one[0], c.more, c.turns, c.asked = parts[0], c.more[:0], nil, 0
	if len(parts) > 1 {
		c.more = append(c.more, parts...)
	}
}

// Free gives the calls back.
func (c *Compound) Free() { free(c.Parts()) }

func free(parts []Part) {
	for _, p := range parts {
		p.Site.Engine().Free(p.Call)
	}
}

// Parts is in the order of the keys.
func (c *Compound) Parts() []Part {
	if len(c.more) > 0 {
		return c.more
	}
	return c.one[:]
}

// Asked is the parts that nodes were asked for.
func (c *Compound) Asked() []Part { return c.inTurn()[:c.asked] }

func (c *Compound) inTurn() []Part {
	if c.turns != nil {
		return c.turns
	}
	return c.Parts()
}

// First is the call for the first key.
func (c *Compound) First() *engine.Call { return c.Parts()[0].Call }

// Watch has the end of a context, shown by its Done channel, end the calls.
func (c *Compound) Watch(done <-chan struct{}) {
	for _, p := range c.Parts() {
		p.Call.Watch(done)
	}
}

// About sets the lock of the calls. The nodes of absent do not have its key; b is of a fenced acquire.
func (c *Compound) About(t token.Token, b fencing.Block, absent quorum.Set) {
	for _, p := range c.Parts() {
		p.Token, p.Block, p.Absent = t, b, absent
	}
}

// Accompany has extends win only while the validity of h lasts, until before. Nodes without a key
// are given it again.
func (c *Compound) Accompany(h Hold, before clock.Instant) {
	for _, p := range c.Parts() {
		p.Before, p.Repairer, p.Life = before, h.lease, h.life
	}
}

// Do makes the calls, and returns their outcome. The error is context.Canceled where the end of the caller's context
// has ended one of them. No user code runs meanwhile: others may wait for this caller.
func (c *Compound) Do() (op *engine.Op, unsent bool, err error) {
	if len(c.more) == 0 {
		return c.Ended(c.one[0].Site.Engine().Do(c.one[0].Call))
	}
	if c.First().Kind == engine.Acquire {
		return c.outcome(c.askInTurn())
	}
	return c.outcome(c.AskAll())
}

// AskAll asks all sites at once. If one cannot be asked, the earlier ones are.
func (c *Compound) AskAll() error {
	err := c.each((*engine.Engine).Begin)
	return cmp.Or(err, await(c.Asked()))
}

// askInTurn asks the sites one after another: of two overlapping sets of keys, the first one where they meet first
// wins, and the other asks no further. Sites known to have no quorum come first: keys at others would be held in vain.
func (c *Compound) askInTurn() (err error) {
	c.turns, c.asked = nil, 0
	lacking := 0
	for i, p := range c.more {
		if p.Site.Engine().LacksQuorum() {
			if c.turns == nil {
				c.turns = slices.Clone(c.more)
			}
			copy(c.turns[lacking+1:i+1], c.turns[lacking:i])
			c.turns[lacking] = p
			lacking++
		}
	}
	for won := true; err == nil && won && c.asked < len(c.more); {
		var at []Part
		if at, err = c.queue((*engine.Engine).Begin); err == nil {
			err = await(at)
			won = !slices.ContainsFunc(at, func(p Part) bool { return p.Err != nil })
		}
	}
	return err
}

// queue has the parts at the next site queued by f: all of them or none.
func (c *Compound) queue(f func(*engine.Engine, engine.Ops) error) (at []Part, err error) {
	var ops engine.Ops
	rest, n := c.inTurn()[c.asked:], 0
	for ; n < len(rest) && rest[n].Site == rest[0].Site; n++ {
		ops.Add(&rest[n].Op)
	}
	if err = f(rest[0].Site.Engine(), ops); err == nil {
		c.asked += n
	}
	return rest[:n], err
}

// each has all parts queued by f, site after site, until f fails.
func (c *Compound) each(f func(*engine.Engine, engine.Ops) error) (err error) {
	for c.asked = 0; err == nil && c.asked < len(c.Parts()); {
		_, err = c.queue(f)
	}
	return err
}

// await waits for the results of parts. The error is context.Canceled, if the end of the context has ended one of them.
func await(parts []Part) error {
	for _, p := range parts {
		p.Wait()
	}
	for _, p := range parts {
		if err := p.Ended(); err != nil {
			return err
		}
	}
	return nil
}

// Await is Do for an acquire of one key, sent along with a release.
func (c *Compound) Await() (op *engine.Op, unsent bool, err error) {
	return c.Ended(c.First().Ended())
}

// Ended is the outcome of an operation on one key. err is the error of the call.
func (c *Compound) Ended(err error) (*engine.Op, bool, error) {
	c.asked = 0
	if err == nil {
		c.asked = 1
	}
	return c.outcome(err)
}

// Manner is how a release is sent.
type Manner uint8

const (
	Awaited Manner = iota // its caller waits for the nodes
	Left                  // the context of its caller has ended
	Soon                  // with the next operation, or a little later
	AtOnce                // when the call returns, as by DriveAtOnce
)

// IsAwaited reports whether the caller learns of the result.
func (m Manner) IsAwaited() bool { return m <= Left }

// Release makes the calls, which are releases: all of them or, with ErrClosed, none. The acquire of the first waiter
// for a lock of one key is sent along; ErrBusy: there is no room for both. A release that is not awaited is counted
// when the first key has a result.
func (c *Compound) Release(how Manner, along *engine.Call) (op *engine.Op, unsent bool, err error) {
	switch {
	case how == Left:
		return c.outcome(c.each((*engine.Engine).Leave))
	case how.IsAwaited() && along != nil:
		return c.Ended(c.one[0].Site.Engine().DoWith(c.one[0].Call, along))
	case how.IsAwaited():
		return c.Do()
	}
	c.First().OfSet = false
	_ = c.each(func(e *engine.Engine, ops engine.Ops) error {
		if err = cmp.Or(e.Discard(ops, along), err); how == AtOnce {
			e.DriveAtOnce()
		} else {
			e.DriveSoon()
		}
		return nil
	})
	return nil, false, err
}

// Submit asks for part i, after the earlier ones, for a user without a waiting caller. The part's Done is called when
// it has a result.
func (c *Compound) Submit(i int) error {
	p := c.Parts()[i]
	c.asked = i + 1
	return p.Site.Engine().Submit(&p.Op)
}

// Rollback releases what was acquired, since err is the result of the whole.
func (c *Compound) Rollback(err error) {
	for _, p := range c.Asked() {
		if p.Err == nil {
			p.Site.Engine().Discount(&p.Op, err)
		}
	}
}

// outcome returns the error of the whole, and its deciding operation. An error of the call itself comes first. If
// unsent, no node has heard of it.
func (c *Compound) outcome(ended error) (op *engine.Op, unsent bool, err error) {
	if ended != nil {
		return &c.First().Op, c.asked == 0 && (ended == engine.ErrBusy || ended == engine.ErrClosed), ended
	}
	op, err = c.Result()
	return op, false, err
}

// Result is the result of the asked parts, and its deciding operation: a lock is lost, or taken, if one of its keys
// is.
func (c *Compound) Result() (op *engine.Op, err error) {
	op = &c.First().Op
	for _, p := range c.Asked() {
		if next := engine.Joint(err, p.Err); next != err {
			op, err = &p.Op, next
		}
	}
	return op, err
}

// Explain returns err, the result of the whole decided by op, as the API shows it.
func (c *Compound) Explain(op *engine.Op, err error) error {
	at := c.Parts()[0].Site
	for _, p := range c.more {
		if &p.Op == op {
			at = p.Site
		}
	}
	return at.Explain(op, err)
}

// Note counts the result of a lock of several keys.
func (c *Compound) Note(err error) {
	if len(c.more) > 0 {
		c.more[0].Site.Engine().Note(c.more[0].Kind, err)
	}
}

// Until is when the validity of a lock ends, as acquired or extended.
func (c *Compound) Until() clock.Instant {
	least := clock.Never
	for _, p := range c.Parts() {
		least = min(least, p.Until)
	}
	return least
}

// Validity is that of an extend, if it has won.
func (c *Compound) Validity() renewal.Validity {
	return renewal.Validity{TTL: c.First().TTL, Until: c.Until()}
}

// Absent is the nodes without any of the keys. Nodes of several sites have no common numbers.
func (c *Compound) Absent() quorum.Set {
	absent := quorum.Everything
	for _, p := range c.Parts() {
		absent &= p.Absent
		if p.Site != c.Parts()[0].Site {
			return 0
		}
	}
	return absent
}

// Refused is the call for the key at a place, if nodes have refused it as taken, or nil. A key with split votes is so
// only where no other key is taken, and its rounds are used up: until then no holder of it was seen.
func (c *Compound) Refused(place int) *engine.Call {
	p := c.Parts()[place]
	_, err := c.Result()
	if slices.Contains(c.Asked(), p) && p.Err == err && (err == engine.ErrTaken || err == engine.ErrSplit) {
		return p.Call
	}
	return nil
}
