package checker

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/bench/network/history"
)

// What is allowed once the network is healed.
const (
	soon     = 1100 * time.Millisecond // until the first grant, and for a key that is free and wanted
	patience = 3 * time.Second         // of a waiter, beside the holds of others; and until nothing fails any more
)

// liveness: once the network is healed, all is granted soon, and nothing fails.
func (c *check) liveness() {
	first := map[int]history.Time{}
	for _, x := range c.Calls {
		if strings.HasPrefix(x.Keys[0], "probe-") && x.Result == history.OK && x.Answered > c.Heal && first[x.Client] == 0 {
			first[x.Client] = x.Answered
		}
	}
	for client := 1; client <= c.Clients; client++ {
		at := first[client]
		if at == 0 {
			at = c.Stop
		}
		late := at.Sub(c.Heal)
		c.max("first grant after the heal, ms", late)
		if !c.excused(client, c.Heal, at, late, soon) {
			c.found(Unavailable, c.Library, at, "client %d had its first grant %v after the network was healed", client, late)
		}
	}
	for key := range c.uses() {
		d, until := c.freeAndWanted(key, c.Heal, c.Stop)
		c.max("free and wanted after the heal, ms", d)
		if d > soon && !c.excused(0, until.Add(-d), until, d, soon) {
			c.found(Unavailable, c.Library, until, "%s was free and wanted for %v after the network was healed", key, d)
		}
	}
	for _, x := range c.Calls {
		if x.Library == history.Front {
			continue
		}
		from := max(x.Asked, c.Heal)
		if wait := x.Answered.Sub(from); waits(x) && wait > patience && !c.excused(x.Client, from, x.Answered, wait-c.heldByOthers(x, from), patience) {
			c.found(Unavailable, x.Library, x.Answered, "%s %s of %v waited for %v after the network was healed: %s", x.Worker, x.API, x.Keys, wait, x.Result)
		}
		if x.Asked > c.Heal.Add(patience) && !isLegal(x) && c.longest(x.Asked.Add(-time.Second), x.Answered.Add(time.Second), nil) < 2*leastPause && c.standstill(x.Client, x.Asked.Add(-time.Second), x.Answered) == 0 {
			c.found(Unavailable, x.Library, x.Answered, "%s %s of %v failed after %v, with the network healed: %s %s", x.Worker, x.API, x.Keys, x.Answered.Sub(x.Asked), x.Result, x.Text)
		}
	}
}

// leastPause is that which is noted.
const leastPause = 20 * time.Millisecond

// isLegal reports whether a result is to be expected of a healthy network.
func isLegal(x *history.Call) bool {
	switch {
	case x.Result == history.OK:
		return true
	case strings.Contains(x.Result, history.NoQuorum):
		return false
	case strings.HasPrefix(x.Keys[0], "crowd-") || isLimited(x): // with little time
		return true
	}
	return !waits(x) && (x.Result == history.Taken || strings.Contains(x.Result, history.Deadline))
}

// use is a change at a key: of its holders, or of those that wait for it alone.
type use struct {
	at           history.Time
	holds, wants int
}

func (c *check) uses() map[string][]use {
	if c.usage != nil {
		return c.usage
	}
	c.usage = map[string][]use{}
	note := func(key string, from, to history.Time, holds, wants int) {
		c.usage[key] = append(c.usage[key], use{from, holds, wants}, use{to, -holds, -wants})
	}
	for _, x := range c.Calls {
		k, end := x.Keys[0], x.Answered
		if x.From > 0 {
			end = x.Until
			if x.Gone < x.Until.Add(time.Second) {
				end = max(end, x.Gone) // the release takes its time
			}
			for _, k := range x.Got {
				note(k, x.Answered, end, 1, 0)
			}
		}
		if x.Library == history.Front && x.Unanswered { // redlock serve gives it the lock, as any server does
			note(k, x.Asked, c.arrived(x).Add(x.TTL+200*time.Millisecond), 1, 0)
		}
		if waits(x) && len(x.Keys) == 1 && !history.IsPrivate(k) && x.Library != history.Front {
			note(k, x.Asked, x.Answered, 0, 1)
		}
		if strings.HasPrefix(k, "book") { // readers wait for writers alone, for those that wait too
			if r := k + " for readers"; !x.Shared {
				note(r, x.Asked, end, 1, 0)
			} else if waits(x) {
				note(r, x.Asked, x.Answered, 0, 1)
			}
		}
	}
	for _, list := range c.usage {
		slices.SortFunc(list, func(a, b use) int { return cmp.Compare(a.at, b.at) })
	}
	return c.usage
}

// freeAndWanted is the longest time between two others for which a key was wanted and held by none, and when it ended.
func (c *check) freeAndWanted(key string, from, to history.Time) (longest time.Duration, until history.Time) {
	holds, wants, since := 0, 0, history.Time(0)
	for _, u := range c.uses()[key] {
		if since > 0 {
			if d := min(u.at, to).Sub(max(since, from)); d > longest {
				longest, until = d, min(u.at, to)
			}
		}
		holds, wants = holds+u.holds, wants+u.wants
		switch {
		case holds > 0 || wants == 0:
			since = 0
		case since == 0:
			since = u.at
		}
	}
	return longest, until
}

// heldByOthers is for how long others held one of the keys of a call between a time and its answer.
func (c *check) heldByOthers(x *history.Call, from history.Time) (d time.Duration) {
	var spans [][2]history.Time
	for _, k := range x.Keys {
		for _, y := range c.claims[k] {
			if end := max(y.Until, min(y.Gone, y.Until.Add(time.Second))); y != x && end > from && y.Answered < x.Answered {
				spans = append(spans, [2]history.Time{max(y.Answered, from), min(end, x.Answered)})
			}
		}
	}
	slices.SortFunc(spans, func(a, b [2]history.Time) int { return cmp.Compare(a[0], b[0]) })
	for _, s := range spans {
		if s[1] > from {
			d += s[1].Sub(max(s[0], from))
			from = s[1]
		}
	}
	return d
}
