package group

import (
	"cmp"
	"context"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/holding"
	"github.com/redlock-go/redlock/internal/waiting"
	"github.com/redlock-go/redlock/quorum"
)

// turns is the places of a set in the lines for its keys. Each time that it has a turn in one the set asks the nodes
// for all keys. While others have another key it keeps the turn for as long as it has waited for it, and then leaves
// that line: the key is free meanwhile, and others want it. It stands there again when it waits for no other turn. A
// turn that is kept refuses no vote, so no set waits for another.
type turns struct {
	group *Group
	keys  *holding.More
	all   []turn     // by the place of the key; nil: it stands in no line
	lines int        // in which it stands
	came  chan *turn // by goroutines that wait for a turn, one for each line: it is the caller's to use
	gone  chan *turn // by those that have left their line
	last  error      // of a line that was left: how its last attempt has ended
	ctx   context.Context
	end   context.CancelFunc
}

// turn is the place of a set in one line, or none, without a Waiter.
type turn struct {
	*waiting.Waiter
	joined time.Duration
	acts   bool          // it is the turn of the set, whose caller acts for the line
	keeps  bool          // it was, and the set keeps it
	heard  waiting.Tries // of the goroutine
}

// keepMost is for how long a set keeps a turn at most.
const keepMost = 1200 * time.Millisecond

// join has the set stand in the line for a key. Its last attempt, if it has made one, has ended with last, and the
// nodes of denied have refused the key.
func (x *turns) join(place int, call *engine.Call, denied quorum.Set, last error) {
	if x.all == nil {
		n := len(x.keys.Keys)
		x.all, x.came, x.gone = make([]turn, n), make(chan *turn), make(chan *turn, n)
		x.ctx, x.end = context.WithCancel(context.Background()) // a panic of the caller's would end the process
	}
	one, lines := &x.all[place], x.group.at(x.keys, place).lines
	*one = turn{joined: x.group.clock.Now(), heard: waiting.Unlimited()}
	one.Waiter = lines.Join(x.keys.Keys[place], call, denied, last, true)
	x.lines++
	go one.wait(x.ctx, x.came, x.gone)
}

// wait waits for a turn. One that is not taken in time is given up: a hook may have the caller's goroutine.
func (one *turn) wait(ctx context.Context, came, gone chan<- *turn) {
	if why, _ := one.Await(ctx, &one.heard); why == waiting.MayAttempt { // no lock is passed on to a set
		timer := time.NewTimer(keepMost)
		defer timer.Stop()
		select {
		case came <- one:
			return
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	one.Leave()
	gone <- one
}

// left notes that the set stands in a line no more.
func (x *turns) left(one *turn) {
	one.Waiter, one.acts, one.keeps = nil, false, false
	x.lines--
	x.last = cmp.Or(one.heard.Last, x.last)
}

// await waits until the set is to ask the nodes: it has a turn, or polls.
func (x *turns) await(ctx context.Context, t *waiting.Tries) waiting.Reason {
	pause := t.Wait()
	if x.lines > 0 && !t.IsLimited() {
		pause = time.Hour
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case one := <-x.came:
			for more := true; more; { // those that have come too share the attempt
				one.acts = true
				select {
				case one = <-x.came:
				default:
					more = false
				}
			}
			return waiting.MayAttempt
		case one := <-x.gone:
			if x.left(one); x.lines == 0 {
				return waiting.MayAttempt
			}
		case <-timer.C:
			return waiting.MayAttempt
		case <-ctx.Done():
		case <-x.group.ending:
			return waiting.Closed
		}
	}
	return waiting.GivesUp
}

// refused has the set wait for the keys that nodes have refused in its last attempt.
func (x *turns) refused(c *Calls) {
	waits := false
	for i := range x.all {
		one, by := &x.all[i], c.Refused(i)
		if one.Waiter == nil {
			continue
		}
		switch {
		case !one.acts:
			one.Asked(deniedBy(by))
			one.keeps = one.keeps && by == nil
		case by != nil:
			one.Attempted(holding.Hold{}, deniedBy(by), engine.ErrTaken)
			one.keeps = false
		default:
			one.keeps = one.Keep(min(x.group.clock.Now()-one.joined, keepMost))
		}
		waits = waits || !one.keeps
		if one.acts {
			one.acts = false
			go one.wait(x.ctx, x.came, x.gone)
		}
	}
	for i := range x.keys.Keys {
		if by := c.Refused(i); by != nil && !waits && (x.all == nil || x.all[i].Waiter == nil) {
			x.join(i, by, deniedBy(by), engine.ErrTaken)
		}
	}
}

// leave leaves all lines, after an attempt that has ended with err.
func (x *turns) leave(h Handle, err error) {
	if x.all == nil {
		return
	}
	x.end()
	for i := range x.all {
		if one := &x.all[i]; one.acts {
			one.Attempted(h.hold, 0, err)
			one.Leave()
			x.left(one)
		}
	}
	for x.lines > 0 {
		one := (*turn)(nil)
		select {
		case one = <-x.came:
			one.Leave()
		case one = <-x.gone:
		}
		x.left(one)
	}
	x.all = nil
}
