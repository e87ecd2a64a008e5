// Package checker judges the history of a run: what was promised, and is not so.
//
// It knows only what correct users know. A claim lasts from the first look at a granted lock that showed validity to the call
// of the release, or to the end of the validity that the last look showed. Where the machine did not let a process run,
// what comes late is no one's fault, and is excused by as much.
package checker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/bench/network/history"
)

// Rules, by what breaks them.
const (
	Overlap     = "overlap"        // two claims on one key at once
	Token       = "token"          // a fencing token that is not above an earlier one
	Refused     = "holder refused" // a holder within its validity was refused by the register
	Late        = "late"           // a call outlives its context, or Options.Wait, by more than 100 ms
	Early       = "early"          // a call gives up before its context, Wait and attempts are over, or makes more attempts
	Unbacked    = "unbacked"       // a lock granted without a quorum of its key's group
	Strayed     = "strayed"        // a key at the masters of two groups
	Misnamed    = "misnamed"       // a lock with another name than that of its call
	FalseTaken  = "false taken"    // no other had the lock
	FalseLoss   = "false not held" // it was not taken away
	KeyKept     = "key kept"       // a key is there though its lock is over
	NoExpiry    = "no expiry"      // a key without a TTL
	Unavailable = "unavailable"    // a free key that is not granted, or a call that fails, once the network is healed
	Lost        = "lost"           // a lock that was kept alive ends beside a quorum
	Unclean     = "unclean end"    // a process that does not end as it should
	Noise       = "noise"          // more lines in the log than promised
)

// check is the work on a history.
type check struct {
	*history.History
	Verdict
	claims map[string][]*history.Call // by key, then From
	pauses map[int][]*history.Pause
	breaks map[string][]*history.Break // by digest
	first  map[string]history.Time     // the first grant of each digest; later ones are passed on
	usage  map[string][]use
	groups map[string]int // of masters, by key
}

// Check judges a history.
func Check(h *history.History) *Verdict {
	c := &check{
		History: h, claims: map[string][]*history.Call{}, pauses: map[int][]*history.Pause{}, breaks: map[string][]*history.Break{}, first: map[string]history.Time{},
		Verdict: Verdict{Setup: h.Setup, Counts: map[string]int{}, Figures: map[string]float64{}, Results: map[string]int{}},
	}
	for _, p := range h.Pauses {
		c.pauses[p.Client] = append(c.pauses[p.Client], p)
	}
	for _, b := range h.Breaks {
		c.breaks[b.Digest] = append(c.breaks[b.Digest], b)
	}
	for _, call := range h.Calls {
		c.Results[call.Library+" "+call.API+": "+call.Result]++
		if call.Result == history.OK {
			c.Counts["grants"]++
		}
		if at := c.first[call.Digest]; call.Digest != "" && (at == 0 || call.Answered < at) {
			c.first[call.Digest] = call.Answered
		}
		if call.From > 0 {
			for _, k := range call.Got {
				c.claims[k] = append(c.claims[k], call)
			}
		}
	}
	for _, list := range c.claims {
		slices.SortFunc(list, func(a, b *history.Call) int { return cmp.Compare(a.From, b.From) })
	}
	c.places()
	c.exclusion()
	c.tokens()
	c.names()
	c.contexts()
	c.answers()
	c.quorums()
	c.losses()
	c.keys()
	c.liveness()
	c.processes()
	c.faults()
	return &c.Verdict
}

// found notes that a rule was broken.
func (c *check) found(rule, library string, at history.Time, format string, args ...any) {
	f := Finding{Rule: rule, Library: library, At: at.Sub(c.Start).Seconds(), Text: fmt.Sprintf(format, args...)}
	if fault := c.faultAt(at); fault != nil {
		f.Fault = kind(fault)
	}
	f.Text += c.during(at)
	c.Violations = append(c.Violations, f)
}

// during names the faults in force at a time, and those that have ended shortly before.
func (c *check) during(at history.Time) string {
	var all []string
	for _, f := range c.Faults {
		if f.From <= at && at <= f.To.Add(afterwards) {
			all = append(all, fmt.Sprintf("%s %s [%s, %s]", kind(f), f.Detail, c.at(f.From), c.at(f.To)))
		}
	}
	if all == nil {
		return ""
	}
	return "; faults: " + strings.Join(all, ", ")
}

// afterwards is how long what happens is put down to a fault that has ended.
const afterwards = 4 * time.Second

// faultAt is the fault to which what happens at a time is put down: the one in force, or the last before, if it was alone.
func (c *check) faultAt(at history.Time) (last *history.Fault) {
	for _, f := range c.Faults {
		if f.From <= at && at <= f.To.Add(afterwards) {
			last = f
		}
	}
	if last != nil && !last.Alone {
		return nil
	}
	return last
}

func kind(f *history.Fault) string {
	if f.Scope == "" {
		return f.Kind
	}
	return f.Kind + "/" + f.Scope
}

// at is a time as the reader of a verdict wants it.
func (c *check) at(t history.Time) string { return fmt.Sprintf("%.3f s", t.Sub(c.Start).Seconds()) }

// waits reports whether a call waits for a lock that is taken.
func waits(c *history.Call) bool { return !strings.HasPrefix(c.API, "Try") }

// killed is how many masters of a key have lost it between two times.
func (c *check) killed(key string, from, to history.Time) int {
	lost := map[int]bool{}
	for _, f := range c.Faults {
		if f.Kind == "kill" && f.From < to && f.To > from && c.isOf(f, key) {
			for _, m := range f.Masters {
				lost[m] = true
			}
		}
	}
	return len(lost)
}
