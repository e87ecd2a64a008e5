package checker

import (
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/bench/network/history"
)

// keys: a key goes with its lock. Keys that are used once show it.
func (c *check) keys() {
	once := map[string]*history.Call{}
	for _, x := range c.Calls {
		if strings.HasPrefix(x.Keys[0], "once-") {
			once[x.Keys[0]] = x
		}
	}
	c.Counts["keys used once"] = len(once)
	told := map[string]bool{}
	report := func(rule, library, key string, at history.Time, format string, args ...any) {
		if !told[key] {
			told[key] = true
			c.found(rule, library, at, "%s: "+format, append([]any{key}, args...)...)
		}
	}
	for _, s := range c.Seen {
		x := once[s.Key]
		switch {
		case s.Key == "redlock:fence":
		case s.TTL < 0:
			report(NoExpiry, c.Library, s.Key, s.At, "at master %d", s.Master)
		case strings.HasSuffix(s.Key, ":redlock:gate") && s.Last:
			report(KeyKept, c.Library, s.Key, s.At, "at master %d: readers are shut out by a writer that has gone", s.Master)
		case strings.HasSuffix(s.Key, ":redlock:gap"):
		case strings.Contains(s.Key, ":redlock:"): // a queue
			if s.Last {
				c.Counts["queues left at the end"]++
			}
		case s.Last && c.inTerm(s.Key, s.At):
		case s.Last:
			report(KeyKept, c.Library, s.Key, s.At, "at master %d after all clients have ended, for %v more", s.Master, s.TTL)
		case x == nil:
		case s.At.Sub(c.arrived(x)) > x.TTL+300*time.Millisecond+c.standstill(0, x.Asked, over(x).Add(time.Second)):
			report(KeyKept, x.Library, s.Key, x.Asked, "at master %d %v after its TTL", s.Master, s.At.Sub(c.arrived(x))-x.TTL)
		case over(x) < c.Heal && s.At > c.Heal.Add(2*time.Second):
			report(KeyKept, x.Library, s.Key, x.Asked, "at master %d, %v after its call (%s) was over and 2 s after the network was healed", s.Master, s.At.Sub(over(x)).Round(time.Millisecond), x.Result)
		}
	}
}

// inTerm reports whether a key may be kept at a time by Options.AtLeast, also after its client has ended.
func (c *check) inTerm(key string, at history.Time) bool {
	return slices.ContainsFunc(c.claims[key], func(x *history.Call) bool { return x.Options.AtLeast > 0 && at < x.Answered.Add(longest(x)) })
}

// over is when a call, with its lock, was over.
func over(x *history.Call) history.Time { return max(x.Answered, x.Gone) }

// arrived is when the SET of a call arrived at the latest, and its TTL began: what the wire holds back comes later.
func (c *check) arrived(x *history.Call) history.Time {
	last := over(x)
	for _, f := range c.Faults {
		if slices.Contains([]string{"rate", "freeze", "stop-master", "delay", "mess", "stop-client"}, f.Kind) && f.From < last && f.To > x.Asked {
			last = max(last, f.To)
		}
	}
	return last
}

// processes: a client ends as it should, with all its goroutines, and its log is short.
func (c *check) processes() {
	ended := 0
	for _, e := range c.Ends {
		if e.Shutdown != history.OK {
			c.found(Unclean, c.Library, c.Stop, "client %d: Shutdown: %s after %v", e.Client, e.Shutdown, e.Took)
		}
		if e.Before == 0 {
			continue
		}
		ended++
		if e.After > e.Before && c.Library == history.Ours {
			c.found(Unclean, c.Library, c.Stop, "client %d: %d goroutines before New, %d after Shutdown", e.Client, e.Before, e.After)
		}
		c.max("log lines of a client", time.Duration(e.Log)*time.Millisecond)
		clients := 1
		if c.Change { // one after another, of which two have half a minute each
			clients = 2
		}
		if c.Library == history.Ours && e.LogOfNode > linesPerMinute*clients*(int(c.Stop.Sub(c.Start).Minutes())+1) {
			c.found(Noise, c.Library, c.Stop, "client %d: %d lines in its log of one node", e.Client, e.LogOfNode)
		}
	}
	if ended < c.Clients {
		c.found(Unclean, c.Library, c.Stop, "%d of %d clients have not ended: see their .stderr", c.Clients-ended, c.Clients)
	}
}

// linesPerMinute is what Config.Logger promises of a node that comes and goes.
const linesPerMinute = 12
