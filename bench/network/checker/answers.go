package checker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/bench/network/history"
)

// deadline is when a call ends at the latest: with its context, and where it waits with Options.Wait.
func deadline(x *history.Call) history.Time {
	if x.Options.Wait > 0 && waits(x) {
		return min(x.Deadline, x.Asked.Add(x.Options.Wait))
	}
	return x.Deadline
}

// isLimited reports whether a call has less than its context.
func isLimited(x *history.Call) bool { return x.Options.Wait > 0 || x.Options.Attempts > 0 }

// contexts: a call ends with its context, and does not give up before. Options bound it too.
func (c *check) contexts() {
	const allowed = 100 * time.Millisecond
	judge := func(client int, library, what string, deadline, answered history.Time) {
		late := answered.Sub(deadline)
		if late <= 0 || deadline == 0 {
			return
		}
		from, to := deadline.Add(-20*time.Millisecond), answered.Add(5*time.Millisecond)
		if c.excused(client, from, to, late, allowed) {
			c.max("call beyond its context, ms", late-c.standstill(client, from, to))
			return
		}
		c.max("call beyond its context, ms", late)
		c.found(Late, library, answered, "%s ended %v after its context", what, late)
	}
	for _, x := range c.Calls {
		judge(x.Client, x.Library, x.Worker+" "+x.API, deadline(x), x.Answered)
		const tick = 5 * time.Millisecond
		n, gaveUp := x.Options.Attempts, strings.HasPrefix(x.Result, history.GaveUp)
		if gaveUp && n > 0 && x.Attempts > n || gaveUp && (n == 0 || x.Attempts < n) && x.Answered < deadline(x).Add(-tick) {
			c.found(Early, x.Library, x.Answered, "%s %s of %v gave up after %v and %d attempts: %s", x.Worker, x.API, x.Keys, x.Answered.Sub(x.Asked), x.Attempts, x.Text)
		}
		if x.Released > 0 && !x.Async {
			judge(x.Client, x.Library, x.Worker+" Release", x.Released.Add(time.Second), x.Gone)
		}
	}
	for _, x := range c.Extends {
		judge(x.Client, c.Library, x.Worker+" Extend", x.Called.Add(time.Second), x.Answered)
	}
}

// window is a time in which a key may be at the nodes because of a call.
type window struct {
	from, to        history.Time
	worker          string
	shared, granted bool
}

// longest is for how long the keys of a call stay at the nodes where nothing deletes them. A term is asked for with the allowance
// for drift, and with the time that the nodes have to answer.
func longest(x *history.Call) time.Duration {
	return max(x.TTL, x.Options.AtLeast+x.Options.AtLeast/50) + 100*time.Millisecond
}

// presence are the windows of each key.
func (c *check) presence() map[string][]window {
	all := map[string][]window{}
	for _, x := range c.Calls {
		to, keys := x.Answered.Add(longest(x)), x.Keys
		if x.Released > 0 {
			to = x.Gone
			if x.Release != history.OK || x.Async {
				to = to.Add(longest(x)) // not known to be gone before
			}
		}
		if x.Result == history.OK {
			keys = x.Got
		}
		for _, k := range keys {
			all[k] = append(all[k], window{from: x.Asked, to: to, worker: x.Worker, shared: x.Shared, granted: x.Result == history.OK})
		}
	}
	return all
}

// isBesideOne reports whether some window of the keys of x, during the call or in the second before, is such a one.
func isBesideOne(x *history.Call, of map[string][]window, is func(w window) bool) bool {
	for _, k := range x.Keys {
		for _, w := range of[k] {
			if w.from < x.Answered && w.to > x.Asked.Add(-time.Second) && is(w) {
				return true
			}
		}
	}
	return false
}

// another reports whether a worker other than that of x may have refused x during the call or in the second before, for a denial speaks
// for a second: one that asked for the key, or only one that was granted it. Readers refuse no reader, and a writer that waits does.
func another(x *history.Call, of map[string][]window, granted bool) bool {
	return isBesideOne(x, of, func(w window) bool {
		return w.worker != x.Worker && !(x.Shared && w.shared) && (x.Shared || w.granted || !granted)
	})
}

// isOfReaders reports whether workers have shared the keys of x in the second before.
func isOfReaders(x *history.Call, of map[string][]window) bool {
	return isBesideOne(x, of, func(w window) bool { return w.shared && w.granted })
}

// answers: what a call says is so.
func (c *check) answers() {
	present, last := c.presence(), map[string]*history.Call{}
	for _, x := range c.Calls {
		before := last[x.Keys[0]]
		last[x.Keys[0]] = x
		if x.Library == history.Front || !strings.Contains(x.Result, history.Taken) {
			continue
		}
		switch waited := strings.HasPrefix(x.Result, history.GaveUp) && !isLimited(x); {
		case history.IsPrivate(x.Keys[0]) && c.Change && before != nil && (before.Release != history.OK || before.Async):
			// Its process has another client now, and the one before may not have ended its key yet.
		case history.IsPrivate(x.Keys[0]):
			c.found(FalseTaken, x.Library, x.Answered, "%s %s of %s, its own key: %s", x.Worker, x.API, x.Keys[0], x.Text)
		case waited && !another(x, present, !c.Groups): // an attempt has the keys of one group while it asks another
			c.found(FalseTaken, x.Library, x.Answered, "%s %s of %v [%s, %s]: no worker had it, nor in the second before: %s", x.Worker, x.API, x.Keys, c.at(x.Asked), c.at(x.Answered), x.Text)
		case waited && c.outage(x) && !c.isBeside(x):
			c.found(FalseTaken, x.Library, x.Answered, "%s %s of %v [%s, %s]: no quorum has been there for long: %s", x.Worker, x.API, x.Keys, c.at(x.Asked), c.at(x.Answered), x.Text)
		case !waited && x.Shared && strings.Contains(x.Text, "exclusive callers come first") && isOfReaders(x, present):
			// Readers in a run leave their lock free now and then, by a gate: no exclusive caller need be there.
		case !waited && !another(x, present, false):
			c.found(FalseTaken, x.Library, x.Answered, "%s %s of %v: no other worker asked for it: %s", x.Worker, x.API, x.Keys, x.Text)
		}
	}
	for _, x := range c.Calls {
		if x.Release != history.NotHeld || x.Left <= x.Gone.Sub(x.Released) || c.isBroken(x, x.Gone) || x.Library == history.Front {
			continue
		}
		if c.killed(x.Keys[0], x.Asked, x.Gone) < 3 {
			c.found(FalseLoss, x.Library, x.Released, "%s Release of %v: not held, with %v of validity", x.Worker, x.Got, x.Left)
		}
	}
	for _, x := range c.Extends {
		if x.Result == history.NotHeld && x.Before > x.Answered.Sub(x.Called) && c.killed(x.Key, x.Called.Add(-10*time.Second), x.Answered) < 3 {
			c.found(FalseLoss, c.Library, x.Called, "%s Extend of %s: not held, with %v of validity", x.Worker, x.Key, x.Before)
		}
	}
}

// outage reports whether a quorum of each key's nodes has been out of reach of a call for so long that no denial can be news. Only
// time counts for which its process ran.
func (c *check) outage(x *history.Call) bool {
	for _, f := range c.Faults {
		answers := func(key string) bool { return !c.silences(f, x.Client, key, x.Answered, x.Answered) }
		if !c.Change && !slices.ContainsFunc(x.Keys, answers) && x.Answered.Sub(f.From)-c.standstill(x.Client, f.From, x.Answered) > 1500*time.Millisecond &&
			c.stopped(x.Client, f.From, x.Answered) == 0 {
			return true
		}
	}
	return false
}

// isBeside reports whether a lock that x wanted was held in its own process at the end of x, or in the second before: this is known
// without a quorum.
func (c *check) isBeside(x *history.Call) bool {
	return slices.ContainsFunc(x.Keys, func(k string) bool {
		return slices.ContainsFunc(c.claims[k], func(y *history.Call) bool {
			return y.Client == x.Client && y.Answered < x.Answered && y.Until > x.Answered.Add(-time.Second)
		})
	})
}

// stopped is how long a fault has stopped a client between two times.
func (c *check) stopped(client int, from, to history.Time) (d time.Duration) {
	for _, f := range c.Faults {
		if f.Kind == "stop-client" && slices.Contains(f.Hit, client) {
			d += max(0, min(f.To, to).Sub(max(f.From, from)))
		}
	}
	return d
}

// losses: a lock that is kept alive lives while three masters are well. The last renewal that won has given them the key, if they
// had lost it.
func (c *check) losses() {
	for _, x := range c.Calls {
		if x.API != "KeepAlive" || x.Over == "" {
			continue
		}
		c.Counts["kept locks lost"]++
		before, well := x.Until.Add(-x.TTL-200*time.Millisecond), 0 // the last renewal that won
		for _, master := range c.mastersOf(x.Got[0]) {
			if c.isWell(master, before, x.Released) {
				well++
			}
		}
		if well >= 3 && !c.Change && c.longest(before, x.Released, nil) < busy {
			c.found(Lost, x.Library, x.Released, "%s of %v: %s", x.Worker, x.Got, x.Over)
		}
	}
}

// isWell reports whether no fault kept a master from any client between two times, and all clients were over those of the seconds
// before: a client that is not dials yet, or has left a key behind, which no other's repair replaces.
func (c *check) isWell(master int, from, to history.Time) bool {
	for _, f := range c.Faults {
		switch {
		case f.From >= to || f.To.Add(afterwards) <= from:
		case f.Masters != nil && !slices.Contains(f.Masters, master):
		case f.To > from || f.Kind == "kill": // and the quarantine
			return false
		case slices.ContainsFunc(f.Hit, func(n int) bool { return n <= c.Clients && c.lastUp(n, master, from) < f.To }):
			return false
		}
	}
	return true
}

// lastUp is when the connection of a client to a master began that stood at a time; 0: none did, or it began before all faults.
func (c *check) lastUp(client, master int, at history.Time) (since history.Time) {
	for _, n := range c.Nodes {
		if n.Client == client && n.At < at && strings.HasSuffix(n.Addr, fmt.Sprintf(".%d:6379", master)) {
			since = n.At
			if !n.Up {
				since = 0
			}
		}
	}
	return since
}
