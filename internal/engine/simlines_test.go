package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/internal/waiters"
	"github.com/redlock-go/redlock/resp"
)

// simLines is the lines of a client, its tracking and its sentry. What those of package
// group do with goroutines and locks, this does with events. What it decides, package
// waiters does.
type simLines struct {
	client *client
	world  *world
	table  waiters.Table[*simWaiter]
	id     string
	pushes bool // it can track
	passes bool // it hands over
	known  int
	users  []*simWaiter

	usable, tracks, gated, denied, silent uint64
	heard                                 [maxMasters]int

	asked      []*simQuery
	operations []*simOperation

	lost    uint64   // of the sentry
	vacant  []string // keys whose lines have places that they may not need
	listens bool
	looked  time.Duration
	nodes   uint64
	at      time.Duration // of the sentry's next turn, or 0
	asking  int           // nodes that the sentry has asked
}

func newSimLines(c *client) *simLines {
	w := c.world
	l := &simLines{client: c, world: w, id: fmt.Sprintf("process%d", c.index), pushes: true, passes: true}
	if !w.rules.lines {
		return l
	}
	salt := ""
	if !w.rules.calm {
		l.pushes, l.passes = !w.chance(15), !w.chance(10)
		if w.chance(10) {
			salt = l.id
		}
	} else {
		l.passes = w.check.passes
	}
	for i := range c.fleet.links {
		l.table.Names = append(l.table.Names, waiters.Hash(fmt.Sprintf("node-%d%s", i, salt)))
	}
	l.table.Outside = l
	n := 1 + w.IntN([]int{2, 4, 8}[w.IntN(3)])
	for range n {
		l.users = append(l.users, &simWaiter{lines: l, client: c, world: w})
	}
	return l
}

// Around, Now, Random and LongPause are waiters.Outside.
func (l *simLines) Around(c *waiters.Contender) waiters.Surroundings {
	return waiters.Surroundings{
		Now:    l.Now(),
		Usable: l.usable,
		Pause:  l.pause(c.Attempts() + 1),
		Jitter: l.Random(waiters.MaxJitter),
	}
}

func (l *simLines) Now() time.Duration                   { return l.client.clock.Now() }
func (l *simLines) Random(d time.Duration) time.Duration { return l.world.between(0, d) }
func (l *simLines) LongPause() time.Duration             { return l.pause(10) }

// longestPause is the longest one between two attempts.
const longestPause = 40 * time.Millisecond

func (l *simLines) pause(attempt int) time.Duration {
	return l.world.between(5*time.Millisecond, min(longestPause, 5*time.Millisecond<<min(attempt, 4))+1)
}

func (l *simLines) timeout() time.Duration {
	if d := l.client.engine.timeout; d > 0 {
		return d
	}
	return 50 * time.Millisecond
}

// change does what is due behind a change of a line.
func (l *simLines) change(key string, due waiters.Due[*simWaiter]) {
	if due.Wake != nil {
		due.Wake.Owner.ring()
	}
	if due.Forgotten {
		l.known--
	}
	l.depart(key, due.Departure)
}

// depart leaves a queue, or a gate, and does not wait for the node.
func (l *simLines) depart(key string, d waiters.Departure) {
	if !d.Is || l.client.dead || l.world.rules.keepsPlace {
		return
	}
	l.world.note("depart", l.client.index, d.Node, 0)
	q := l.client.engine.Query(d.Node, l.timeout())
	switch {
	case l.gated>>d.Node&1 == 0:
		q.Buf, q.Replies = command.AppendQueue(q.Buf, key, l.id, command.Leave)
	case d.First:
		q.Buf, q.Replies = command.AppendGate(q.Buf, key, l.id, command.Leave, false)
	default:
		q.Buf, q.Replies = command.AppendPing(q.Buf)
	}
	l.client.engine.Ask(q)
	q.Free()
}

func (l *simLines) up(node int) {
	if !l.world.rules.lines {
		return
	}
	all := ^(uint64(1) << node)
	l.tracks, l.gated, l.denied, l.silent = l.tracks&all, l.gated&all, l.denied&all, l.silent&all
	if l.pushes {
		l.usable |= ^all
	}
}

func (l *simLines) down(node int) {
	if l.world.rules.lines {
		l.usable &^= 1 << node
		l.lose(node)
	}
}

// lose notes that pushes of a node may have been lost.
func (l *simLines) lose(node int) {
	l.lost |= 1 << node
	l.wakeSentry(0)
}

func (l *simLines) silence(node int) {
	l.silent |= 1 << node
	l.usable &^= 1 << node
	l.lose(node)
}

// pushed takes a push in.
func (l *simLines) pushed(node int, v *resp.Value) {
	if l.client.dead {
		return
	}
	l.heard[node]++
	it := v.Elements()
	it.Next()
	it.Next()
	keys := *it.Value()
	if keys.Null {
		l.lose(node)
		return
	}
	for it := keys.Elements(); it.Next(); {
		name := it.Value().Bytes
		l.changed(node, name, command.OfLock)
		if key, of := command.CutName(name, l.id); of != command.OfLock {
			l.changed(node, key, of)
		}
	}
}

// changed tells the line for a key that a node has changed it, or one beside it.
func (l *simLines) changed(node int, key []byte, of command.Name) {
	l.world.note("pushed", l.client.index, node, int(of))
	wake, lookDue := l.table.Pushed(node, key, of == command.OfLock)
	if wake != nil {
		wake.Owner.ring()
	}
	if lookDue {
		l.vacant = append(l.vacant, string(key))
		l.wakeSentry(0)
	}
}

// released tells the line for a key that this process has deleted it on nodes.
func (l *simLines) released(key []byte, nodes uint64) {
	for node := range l.client.fleet.links {
		if l.known > 0 && nodes>>node&1 == 1 {
			l.changed(node, key, command.OfLock)
		}
	}
}

// simQuery is a query that a goroutine waits for.
type simQuery struct {
	*Query
	waiter *simWaiter // or nil: the sentry does
	over   bool
	then   func(err error)
}

var (
	errGivenUp = errors.New("the waiter has given up")
	errRefused = errors.New("the node refuses what waiting needs")
)

// ask sends a query. then is called when its goroutine goes on.
func (l *simLines) ask(w *simWaiter, q *Query, then func(err error)) {
	s := &simQuery{q, w, false, then}
	l.asked = append(l.asked, s)
	if w != nil {
		w.query = s
	}
	l.client.engine.Ask(q)
}

// end lets the goroutine of a query go on, after a moment.
func (l *simLines) end(s *simQuery, err func() error) {
	s.over = true
	l.client.after(l.moment(), func() {
		if l.client.dead {
			return
		}
		if s.waiter != nil {
			s.waiter.query = nil
		}
		s.then(err())
		s.Free()
	})
}

// moment is how long it is until a goroutine that was woken runs.
func (l *simLines) moment() time.Duration {
	if l.world.chance(3) {
		return l.world.between(0, 2*time.Millisecond)
	}
	return l.world.between(0, 30*time.Microsecond)
}

// poll lets the goroutines go on whose queries or calls have ended.
func (l *simLines) poll() (back bool) {
	for _, s := range slices.Clone(l.asked) {
		if s.over { // its waiter has gone
			continue
		}
		if len(s.Answered()) > 0 {
			<-s.Answered()
			l.end(s, func() error { return s.Err })
			back = true
		}
	}
	l.asked = slices.DeleteFunc(l.asked, func(s *simQuery) bool { return s.over })
	for _, u := range l.users {
		back = u.poll() || back
	}
	return l.pollOperations() || back
}

// track has a node do for w what needs tracking.
func (l *simLines) track(w *simWaiter, node int, write func([]byte) ([]byte, int), then func(said [4]command.Said, err error)) {
	q := l.client.engine.Query(node, l.timeout())
	begins, heard, skip, n := l.tracks>>node&1 == 0, l.heard[node], 0, 0
	if begins {
		q.Buf, skip = command.AppendTracking(q.Buf, w.name, l.id)
	}
	q.Buf, n = write(q.Buf)
	q.Replies = skip + n
	l.ask(w, q, func(err error) {
		var said [4]command.Said
		if err != nil {
			if IsTimeout(err) {
				l.silence(node)
			}
			then(said, err)
			return
		}
		if begins {
			for _, s := range q.Said[:skip] {
				if err = s.Err; s.Later || s.OfKey {
					then(said, err)
					return
				} else if err != nil {
					break
				}
			}
			if err != nil || l.heard[node] == heard {
				l.denied |= 1 << node
				l.usable &^= 1 << node
				then(said, errRefused)
				return
			}
			l.tracks |= 1 << node
		}
		copy(said[:], q.Said[skip:])
		then(said, nil)
	})
}

// isTracked reads the replies of CLIENT CACHING and of PTTL.
func (l *simLines) isTracked(node int, caching, pttl *command.Said) (time.Duration, error) {
	switch {
	case caching.Err != nil:
		l.tracks &^= 1 << node
		return 0, caching.Err
	case pttl.Err != nil:
		return 0, pttl.Err
	case pttl.Ints[0] == command.NoTTL:
		return never, nil
	}
	return max(0, time.Duration(pttl.Ints[0])*time.Millisecond), nil
}

func (l *simLines) watch(w *simWaiter, node int, then func(time.Duration, error)) {
	l.track(w, node, func(b []byte) ([]byte, int) { return command.AppendWatch(b, w.name) }, func(said [4]command.Said, err error) {
		var ttl time.Duration
		if err == nil {
			ttl, err = l.isTracked(node, &said[0], &said[1])
		}
		if l.world.rules.asksBefore && ttl == 0 {
			ttl = time.Hour
		}
		then(ttl, err)
	})
}

// enter enters the queue of a node, or takes its gate.
func (l *simLines) enter(w *simWaiter, step waiters.Step, load bool, then func(waiters.Entry, error)) {
	node, way := step.Node, command.Enter
	if step.Again {
		way = command.Again
	}
	if l.gated>>node&1 == 1 {
		l.track(w, node, func(b []byte) ([]byte, int) { return command.AppendGate(b, w.name, l.id, way, step.First) }, func(said [4]command.Said, err error) {
			if err == nil {
				err = said[0].Err
			}
			if err != nil {
				then(waiters.Entry{}, err)
				return
			}
			left, err := l.isTracked(node, &said[1], &said[2])
			then(waiters.EntryOfGate(said[0].OK, step.Again, left, command.FirstTicket), err)
		})
		return
	}
	l.track(w, node, func(b []byte) ([]byte, int) {
		loads, n := 0, 0
		if load {
			b, loads = command.AppendLoadQueue(b)
		}
		b, n = command.AppendQueue(b, w.name, l.id, way)
		return b, loads + n
	}, func(said [4]command.Said, err error) {
		answer := said[:]
		if load {
			answer = said[1:]
		}
		switch call := &answer[0]; {
		case err != nil:
			then(waiters.Entry{}, err)
		case w.canceled:
			then(waiters.Entry{}, errGivenUp)
		case call.Code == "NOSCRIPT" && !load:
			l.enter(w, step, true, then)
		case call.Lacks || load && said[0].Err != nil && !said[0].Later:
			l.gated |= 1 << node
			l.enter(w, step, true, then)
		case call.Err != nil:
			then(waiters.Entry{}, call.Err)
		default:
			ttl, err := l.isTracked(node, &answer[1], &answer[2])
			then(waiters.EntryOfQueue(call.Ints, ttl, command.FirstTicket), err)
		}
	})
}

// wakeSentry has the sentry look in d.
func (l *simLines) wakeSentry(d time.Duration) {
	w := l.world
	at := w.now() + d + w.between(1, 50*time.Microsecond)
	if l.at != 0 && l.at <= at {
		return
	}
	l.at = at
	l.client.after(at-w.now(), func() {
		if l.at != 0 && l.at <= w.now() {
			l.at = 0
			l.sentry()
		}
	})
}

// sentry is a turn of the sentry.
func (l *simLines) sentry() {
	if l.client.dead || l.asking > 0 {
		return
	}
	if some := l.known > 0; some != l.listens {
		l.listens = some
		l.client.engine.Listen(map[bool]int64{true: 1, false: -1}[some])
	}
	if l.listens {
		l.wakeSentry(2 * l.timeout())
	}
	for _, key := range l.vacant {
		if line := l.table.Find(key); line != nil {
			l.change(key, l.table.Vacate(line))
		}
	}
	l.vacant = nil
	lost, now := l.lost, l.Now()
	all := lost != 0 || now-l.looked >= waiters.LookEvery
	l.lost = 0
	if all {
		l.looked, l.nodes = now, 0
		for _, key := range keyNames {
			if line := l.table.Find(key); line != nil {
				l.change(key, l.table.Look(line, lost))
				l.nodes |= line.Contender.Nodes()
			}
		}
	}
	nodes := l.nodes & l.usable
	if all {
		nodes |= l.silent
	}
	for node := range l.client.fleet.links {
		if nodes>>node&1 == 1 {
			l.ping(node)
		}
	}
}

// ping asks a node for a sign of life.
func (l *simLines) ping(node int) {
	q := l.client.engine.Query(node, l.timeout())
	q.Buf, q.Replies = command.AppendPing(q.Buf)
	l.asking++
	l.ask(nil, q, func(err error) {
		switch {
		case err == nil && l.silent>>node&1 == 1:
			l.silent &^= 1 << node
			if l.denied>>node&1 == 0 {
				l.usable |= 1 << node
			}
		case IsTimeout(err):
			l.silence(node)
		}
		if l.asking--; l.asking == 0 {
			if l.at = 0; l.lost != 0 || len(l.vacant) > 0 {
				l.wakeSentry(0)
			} else {
				l.wakeSentry(2 * l.timeout())
			}
		}
	})
}

// close is Close: the waiters leave, and the sentry gives all places up. A process that
// dies does not get so far.
func (l *simLines) close(dies bool) {
	for _, u := range l.users {
		u.dies()
	}
	for _, lock := range l.world.check.locks {
		if l.world.rules.lines && lock.client == l.client {
			lock.forgotten = true
		}
	}
	if dies {
		return
	}
	for _, key := range keyNames {
		if line := l.table.Find(key); line != nil {
			var d waiters.Departure
			d.Node, d.First, d.Is = line.Contender.Depart()
			l.depart(key, d)
		}
	}
}
