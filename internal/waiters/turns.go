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
	Random(below time.Duration) time.Duration
	LongPause() time.Duration // between two attempts, after many that have failed
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
	next := t.Leave(w)
	due = t.settle(l)
	due.Wake = next
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

// Turn says what w does next. If it acts, it tells the result by one of the methods below.
func (t *Table[T]) Turn(w *Waiter[T]) (turn Turn) {
	w.parked = false
	l := w.line
	switch {
	case w.asks:
		return Turn{Acts: true, Step: Step{Action: Attempt}}
	case l == nil:
		return Turn{Takes: true}
	case l.first != w:
		w.Look = never // the one that leaves wakes the first
		if now := t.Outside.Now(); l.Until > now {
			w.Look = l.Until + t.Outside.Random(MaxJitter)
		}
	case l.Busy: // the one that acts wakes the first
		w.Look = never
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

// Acts says whether w acts for its line.
func (w *Waiter[T]) Acts() bool { return w.acts != nil }

// Asks says whether the attempt of w was sent along with a release.
func (w *Waiter[T]) Asks() bool { return w.asks }

// Told notes that this attempt has its end.
func (w *Waiter[T]) Told() { w.asks = false }

// Leaves has w get no attempt any more, and says whether it acts: it must end that before
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
	if l.first != nil && l.first != w {
		due.Wake = l.first
	}
	return due
}

// NotEntered tells that w has given up before it knew whether its process has entered the
// queue of a node, which that leaves in any case.
func (t *Table[T]) NotEntered(w *Waiter[T], node int) Due[T] {
	l, _ := t.done(w)
	l.Contender.Lost(1 << uint(node))
	return t.end(w, l)
}

// Ended tells that w leaves while it acts: a panic or its context has ended it. The next
// asks at once.
func (t *Table[T]) Ended(w *Waiter[T]) Due[T] {
	l, _ := t.done(w)
	l.Contender.Freed()
	return t.end(w, l)
}

// Done tells that w, which acts for its line, has done what there was to do.
func (t *Table[T]) Done(w *Waiter[T]) Due[T] {
	l, _ := t.done(w)
	return t.end(w, l)
}

// Won tells that the nodes have granted w the lock, until then. Before others have their
// turn the lock may pass on to those that wait now, or further if none is known.
func (t *Table[T]) Won(w *Waiter[T], until time.Duration) Due[T] {
	l, _ := t.done(w)
	l.Contender.Won()
	l.Until, l.Passes = until, MaxPasses-1
	if l.Contender.Others() > 0 {
		l.Passes = min(l.Passes, l.len-1)
	}
	return t.end(w, l)
}

// Refused tells that the attempt of w has not won; see Contender.Refused.
func (t *Table[T]) Refused(w *Waiter[T], denied uint64) Due[T] {
	l, s := t.done(w)
	l.Contender.Refused(&s, denied)
	return t.end(w, l)
}

// Entered tells that the process is in the queue of a node.
func (t *Table[T]) Entered(w *Waiter[T], node int, e Entry) Due[T] {
	l, s := t.done(w)
	if l.Contender.Entered(&s, node, e); e.Others > 0 {
		l.Passes = min(l.Passes, l.len)
	}
	return t.end(w, l)
}

// Watched tells that a node tracks the key; see Contender.Watched.
func (t *Table[T]) Watched(w *Waiter[T], node int, ttl time.Duration) Due[T] {
	l, s := t.done(w)
	l.Contender.Watched(&s, node, ttl)
	return t.end(w, l)
}

// Failed tells that a node was of no use to w.
func (t *Table[T]) Failed(w *Waiter[T], node int) Due[T] {
	l, s := t.done(w)
	l.Contender.Failed(&s, node)
	return t.end(w, l)
}

// MayPass returns the first that waits for key, if the lock may pass on to it, or nil.
func (t *Table[T]) MayPass(key string) *Waiter[T] {
	l := t.lines[key]
	if l == nil || l.Passes <= 0 {
		return nil
	}
	return l.first
}

// Passed tells that the lock was passed on to w, the first of its line, which leaves it.
// w is to be woken too.
func (t *Table[T]) Passed(w *Waiter[T], until time.Duration) (due Due[T]) {
	l := w.line
	next := t.Leave(w)
	l.Until = until
	l.Passes--
	if next == nil {
		return t.settle(l)
	}
	if next.Look > until+MaxJitter {
		due.Wake = next
	}
	return due
}

// Along returns the first that waits for key, if it may ask for the lock in the moment in
// which its holder gives that back, or nil. It acts from now on; see Told.
func (t *Table[T]) Along(key string) *Waiter[T] {
	l := t.lines[key]
	if l == nil || l.first == nil || l.Busy || !l.first.parked || !l.Contender.MayAttempt() {
		return nil
	}
	w := l.first
	l.Until = 0
	l.Contender.Freed()
	l.Busy, w.acts, w.asks = true, l, true
	return w
}

// Freed tells that a holder in this process has given the lock for key back, which was
// granted, and perhaps passed on since, held ago. Where processes do not queue up, and it
// was passed on, the first leaves others their turn: it waits as they do between two
// attempts. It does so as often as costs the line a ninth of its time.
func (t *Table[T]) Freed(key string, passed bool, held time.Duration, usable uint64) (wake *Waiter[T]) {
	l := t.lines[key]
	if l == nil {
		return nil
	}
	l.Until = 0
	l.Contender.Freed()
	if l.first != nil && usable == 0 && passed {
		if pause := t.Outside.LongPause(); held/8 >= t.Outside.Random(pause+1) {
			l.Until = t.Outside.Now() + pause
		}
	}
	return l.first
}

// Shortened tells that a lock in this process ends then, perhaps earlier than was known.
func (t *Table[T]) Shortened(key string, until time.Duration) (wake *Waiter[T]) {
	l := t.lines[key]
	if l == nil || l.first == nil || until >= l.Until {
		return nil
	}
	l.Until = until
	return l.first
}

// Pushed tells that a node has pushed a key, or the process's ticket or the gate for it.
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
	return l.first, l.first == nil
}

// Look looks after a line. Pushes of the nodes of lost may have been lost.
func (t *Table[T]) Look(l *Line[T], lost uint64) (due Due[T]) {
	c := &l.Contender
	affected := c.Nodes()&lost != 0
	c.Lost(lost)
	switch first := l.first; {
	case first == nil:
		return t.settle(l)
	case affected, !l.Busy && c.Renew() < min(first.Look, t.Outside.Now()+LookEvery):
		due.Wake = first
	}
	return due
}

// IsContended says whether others want the lock for key, as far as is known.
func (t *Table[T]) IsContended(key string) bool {
	l := t.lines[key]
	return l != nil && (l.len > 0 || t.Outside.Now() < l.Known)
}
