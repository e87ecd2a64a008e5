package waiters

import "time"

// MaxPasses bounds how often in a row a lock is passed on inside a process, so that other
// processes have their turn.
const MaxPasses = 64

const (
	// knownFor is how long a key counts as contended once none waits for it, and maxKnown
	// for how many keys of a table.
	knownFor = 3 * time.Second
	maxKnown = 1024

	// MaxJitter spreads what several waiters do at an instant that they all know.
	MaxJitter = 5 * time.Millisecond

	// LookEvery is how often its user has a Table look at all lines.
	LookEvery = 500 * time.Millisecond
)

// Outside is what a Table looks at.
type Outside interface {
	Around(*Contender) Surroundings
	Now() time.Duration
}

// Due is what the user of a Table has to do, behind a change of it.
type Due[T any] struct {
	Wake      *Waiter[T] // or nil
	Departure Departure  // once the table is unlocked
	Forgotten bool       // the line is no more
}

// Departure is a queue of processes that is to be left: the node that has it, if there is
// one.
type Departure struct {
	Is, First bool
	Node      int
}

// Stand puts w at the end of the line for key. The nodes of denied have just refused its
// caller the lock.
func (t *Table[T]) Stand(key string, w *Waiter[T], denied uint64) (isNew bool) {
	w.Look = never
	l, isNew := t.Join(key, w)
	if isNew {
		l.Contender.Init(key, t.Names)
		l.Passes = MaxPasses - 1
	}
	if denied != 0 && isNew { // else it may be old news to the first, which watches the key since
		s := t.Outside.Around(&l.Contender)
		l.Contender.Refused(&s, denied)
	}
	return isNew
}

// Remove takes w out of its line, if it is in one.
func (t *Table[T]) Remove(w *Waiter[T]) (due Due[T]) {
	l := w.line
	if l == nil {
		return due
	}
	acted := l.actor() == w
	t.Leave(w)
	due = t.settle(l)
	if acted {
		due.Wake = l.actor()
	}
	return due
}

// Away notes that user code has the goroutine of w from now on, or no longer. The next in line
// acts meanwhile.
func (t *Table[T]) Away(w *Waiter[T], is bool) (due Due[T]) {
	if w.away = is; is && w.line != nil && !w.line.Busy {
		due.Wake = w.line.actor()
	}
	return due
}

// Vacate gives up what a line does not need, if none waits in it.
func (t *Table[T]) Vacate(l *Line[T]) Due[T] { return t.settle(l) }

// settle forgets a line that none waits in, or remembers for a while that its key is
// contended.
func (t *Table[T]) settle(l *Line[T]) (due Due[T]) {
	if l.first != nil || l.Busy {
		return due
	}
	now := t.Outside.Now()
	if l.Known == 0 && len(t.lines) <= maxKnown {
		l.Known = now + knownFor
	}
	forget := now >= l.Known
	if forget || l.Contender.IsInTheWay() {
		d := &due.Departure
		d.Node, d.First, d.Is = l.Contender.Depart()
	}
	due.Forgotten = forget && t.Settle(l, now)
	return due
}

// Turn is what a waiter does next. It takes the lock that was passed on to it, does what
// Step says for its line, or parks until Waiter.Look.
type Turn struct {
	Takes, Acts bool
	Step        Step
}

// Turn decides what w does next. If it acts, it reports the result by one of the methods below.
func (t *Table[T]) Turn(w *Waiter[T]) (turn Turn) {
	w.parked = false
	l := w.line
	switch {
	case w.asks:
		return Turn{Acts: true, Step: Step{Action: Attempt}}
	case l == nil:
		return Turn{Takes: true}
	case l.actor() != w, l.Busy:
		w.Look = never // the one that leaves or acts wakes it
	default:
		l.Known = 0
		s := t.Outside.Around(&l.Contender)
		s.Held = l.Until
		if turn.Step = l.Contender.Next(&s); turn.Step.Action != Pause {
			l.Busy, w.acts, turn.Acts = true, l, true
			return turn
		}
		w.Look = turn.Step.Until
	}
	w.parked = true
	return turn
}

// Acts reports whether w acts for its line.
func (w *Waiter[T]) Acts() bool { return w.acts != nil }

// Asks reports whether the attempt of w was sent along with a release.
func (w *Waiter[T]) Asks() bool { return w.asks }

// Told notes that this attempt has its end.
func (w *Waiter[T]) Told() { w.asks = false }

// Leaves has w get no attempt any more, and reports whether it acts: it must end that before
// it leaves.
func (w *Waiter[T]) Leaves() (acts bool) {
	w.parked = false
	return w.acts != nil
}

// done has w act no more. The line is still to be ended.
func (t *Table[T]) done(w *Waiter[T]) (*Line[T], Surroundings) {
	l := w.acts
	l.Busy, w.acts, w.asks = false, nil, false
	s := t.Outside.Around(&l.Contender)
	s.Held = l.Until
	return l, s
}

// end is the end of an act of w. If w is not the first any more, since the lock was passed
// on to it, the first acts now.
func (t *Table[T]) end(w *Waiter[T], l *Line[T]) Due[T] {
	due := t.settle(l)
	if next := l.actor(); next != w {
		due.Wake = next
	}
	return due
}

// NotEntered reports that w has given up before it knew whether its process has entered the
// queue of a node, which that leaves in any case.
func (t *Table[T]) NotEntered(w *Waiter[T], node int) Due[T] {
	l, _ := t.done(w)
	l.Contender.Lost(1 << uint(node))
	return t.end(w, l)
}

// Ended reports that w leaves while it acts: a panic or its context has ended it. The next
// asks at once.
func (t *Table[T]) Ended(w *Waiter[T]) Due[T] {
	l, _ := t.done(w)
	l.Contender.Freed()
	return t.end(w, l)
}

// Done reports that w, which acts for its line, has done what there was to do.
func (t *Table[T]) Done(w *Waiter[T]) Due[T] {
	l, _ := t.done(w)
	return t.end(w, l)
}

// Won reports that the nodes have granted w the lock, until then, except those of denied.
// Before others have their turn the lock may pass on to those that wait now, or further if
// none is known.
func (t *Table[T]) Won(w *Waiter[T], until time.Duration, denied uint64) Due[T] {
	l, s := t.done(w)
	l.Contender.Won(&s, denied)
	l.Until, l.Passes = until, MaxPasses-1
	if l.Contender.Others() > 0 {
		l.Passes = min(l.Passes, l.len-1)
	}
	return t.end(w, l)
}

// Refused reports that the attempt of w has not won; see Contender.Refused.
func (t *Table[T]) Refused(w *Waiter[T], denied uint64) Due[T] {
	l, s := t.done(w)
	l.Contender.Refused(&s, denied)
	return t.end(w, l)
}

// Entered reports that the process is in the queue of a node.
func (t *Table[T]) Entered(w *Waiter[T], node int, e Entry) Due[T] {
	l, s := t.done(w)
	if l.Contender.Entered(&s, node, e); e.Others > 0 {
		l.Passes = min(l.Passes, l.len)
	}
	return t.end(w, l)
}

// Watched reports that a node tracks the key; see Contender.Watched.
func (t *Table[T]) Watched(w *Waiter[T], node int, ttl time.Duration) Due[T] {
	l, s := t.done(w)
	l.Contender.Watched(&s, node, ttl)
	return t.end(w, l)
}

// Failed reports that a node was of no use to w.
func (t *Table[T]) Failed(w *Waiter[T], node int) Due[T] {
	l, s := t.done(w)
	l.Contender.Failed(&s, node)
	return t.end(w, l)
}

// Claimed reports whether w has claimed a gap; see Contender.Claimed.
func (t *Table[T]) Claimed(w *Waiter[T], own bool, left time.Duration) Due[T] {
	l, s := t.done(w)
	l.Contender.Claimed(&s, own, left)
	return t.end(w, l)
}

// MayPass returns the one that acts for those who wait for key, if a lock whose validity ends at until may
// pass on to it, or nil. A holder whose validity ends before that of the one that the line
// knows has lost its lock since.
func (t *Table[T]) MayPass(key string, now, until time.Duration) *Waiter[T] {
	l := t.lines[key]
	if l == nil || l.Passes <= 0 || until < l.Until || l.Contender.LeavesFree(now) {
		return nil
	}
	if w := l.actor(); w != nil && !w.Whole {
		return w
	}
	return nil
}

// Passed reports that the lock was passed on to w, the first of its line, which leaves it.
// w is to be woken too. The next in line sleeps on: the sentry wakes it when the process
// has to ask the nodes.
func (t *Table[T]) Passed(w *Waiter[T], now, until time.Duration) Due[T] {
	l := w.line
	t.Leave(w)
	l.Until = until
	l.Passes--
	l.Contender.Passed(now)
	return t.settle(l)
}

// Along returns the first that waits for key, if it may ask for the lock in the moment in
// which its holder gives that back, or nil. It acts from now on; see Told.
func (t *Table[T]) Along(key string) *Waiter[T] {
	l := t.lines[key]
	if l == nil || l.Busy || !l.Contender.MayAttempt() || l.Contender.LeavesFree(t.Outside.Now()) {
		return nil
	}
	w := l.actor()
	if w == nil || w.Whole || !w.parked {
		return nil
	}
	l.Until = 0
	l.Contender.Freed()
	l.Busy, w.acts, w.asks = true, l, true
	return w
}

// Freed reports that the lock for key has no holder in this process any more.
func (t *Table[T]) Freed(key string) (wake *Waiter[T]) {
	l := t.lines[key]
	if l == nil {
		return nil
	}
	l.Until = 0
	l.Contender.Freed()
	if l.first == nil {
		l.Contender.Unwanted(t.Outside.Now())
	}
	return l.actor()
}

// Shortened reports that a lock in this process ends then, perhaps earlier than was known.
func (t *Table[T]) Shortened(key string, until time.Duration) (wake *Waiter[T]) {
	l := t.lines[key]
	if l == nil || l.first == nil || until >= l.Until {
		return nil
	}
	l.Until = until
	return l.actor()
}

// Pushed reports that a node has pushed a key, or the process's ticket or the gate for it.
// If none waits, and the process keeps a place that it does not need, a look is due.
func (t *Table[T]) Pushed(node int, key []byte, ofLock bool) (wake *Waiter[T], lookDue bool) {
	l := t.lines[string(key)]
	if l == nil {
		return nil, false
	}
	matters := false
	if ofLock {
		matters = l.Contender.Pushed(node)
	} else if matters = l.Contender.Rung(node); matters {
		l.Passes = min(l.Passes, l.len)
	}
	if !matters {
		return nil, false
	}
	return l.actor(), l.first == nil
}

// Look looks after a line. Pushes of the nodes of lost may have been lost.
func (t *Table[T]) Look(l *Line[T], lost uint64) (due Due[T]) {
	c := &l.Contender
	affected := c.Nodes()&lost != 0
	c.Lost(lost)
	switch w := l.actor(); {
	case w == nil:
		return t.settle(l)
	case affected, !l.Busy && c.Renew() < min(w.Look, t.Outside.Now()+LookEvery):
		due.Wake = w
	}
	return due
}

// IsTaken reports whether callers wait for key that must not be overtaken.
func (t *Table[T]) IsTaken(key string) bool {
	l := t.lines[key]
	return l != nil && l.len > 0 && !l.Contender.IsFree(t.Outside.Now())
}

// Ask has the process ask the nodes at the next turn of w, if w is the one that acts for its
// line, and reports whether it is.
func (t *Table[T]) Ask(w *Waiter[T]) bool {
	l := w.line
	if l == nil || l.actor() != w || l.Busy {
		return false
	}
	l.Contender.ask = 0
	return !l.Contender.IsFree(t.Outside.Now())
}

// IsContended reports whether others want the lock for key, as far as is known.
func (t *Table[T]) IsContended(key string) bool {
	l := t.lines[key]
	return l != nil && (l.len > 0 || t.Outside.Now() < l.Known)
}
