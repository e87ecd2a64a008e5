package checker

import (
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/bench/network/history"
	"github.com/redlock-go/redlock/bench/network/nemesis"
)

// Figures are those of a fault that was alone, in milliseconds.
type Figures struct {
	Fault    string
	Length   float64
	Without  []float64 // the longest time without a grant of each client that was hit, from the begin of the fault to its end
	After    []float64 // from its end to the first grant of each
	Wanted   []float64 // the longest time for which a contended key was free and wanted
	NoQuorum int       // answers
	Overlaps int
	False    int // errors
	Dials    int64
}

// faults measures the faults that were alone. What a busy machine had a part in is left out.
func (c *check) faults() {
	grants := map[int][]history.Time{}
	for _, x := range c.Calls {
		if strings.HasPrefix(x.Keys[0], "probe-") && x.Result == history.OK {
			grants[x.Client] = append(grants[x.Client], x.Answered)
			c.Counts["grants of free keys"]++
		} else if x.Result == history.OK && strings.HasPrefix(x.Keys[0], "hot") {
			c.Counts["grants of contended keys"]++
		}
	}
	for _, l := range grants {
		slices.Sort(l)
	}
	for _, f := range c.Faults {
		c.Counts["faults"]++
		var stopped []int
		if f.Kind == "stop-client" {
			stopped = f.Hit
		}
		if !f.Alone {
			continue
		} else if c.longest(f.From, f.To.Add(time.Second), stopped) > busy {
			c.Counts["faults not measured, the machine was busy"]++
			continue
		}
		c.Faulty = append(c.Faulty, c.measure(f, grants))
	}
	c.attempts()
	for _, d := range c.Dials {
		c.Counts["dials"] += int(d.Count)
	}
}

func (c *check) measure(f *history.Fault, grants map[int][]history.Time) Figures {
	m := Figures{Fault: kind(f), Length: ms(f.To.Sub(f.From))}
	for client := 1; client <= c.Clients; client++ {
		without, after := gap(grants[client], f.From, f.To, c.Stop)
		if slices.Contains(f.Hit, client) {
			m.Without, m.After = append(m.Without, ms(without)), append(m.After, ms(after))
		}
	}
	for key := range c.uses() {
		if strings.HasPrefix(key, "hot") {
			d, _ := c.freeAndWanted(key, f.From, f.To)
			m.Wanted = append(m.Wanted, ms(d))
		}
	}
	for _, x := range c.Calls {
		if strings.Contains(x.Result, history.NoQuorum) && f.From < x.Answered && x.Answered < f.To && slices.Contains(f.Hit, x.Client) {
			m.NoQuorum++
		}
	}
	from, to := f.From.Sub(c.Start).Seconds(), f.To.Add(afterwards).Sub(c.Start).Seconds()
	for _, v := range c.Violations {
		switch {
		case v.Fault != m.Fault || v.At < from || v.At > to:
		case v.Rule == Overlap:
			m.Overlaps++
		case v.Rule == FalseTaken || v.Rule == FalseLoss:
			m.False++
		}
	}
	for _, d := range c.Dials {
		if f.From < d.At && d.At < f.To.Add(time.Second) {
			m.Dials += d.Count
		}
	}
	return m
}

// gap is the longest time without one of the grants between two times, and how long after it the first came.
func gap(grants []history.Time, from, to, end history.Time) (longest, after time.Duration) {
	i, _ := slices.BinarySearch(grants, from)
	for last := from; ; i++ {
		if i == len(grants) {
			return max(longest, to.Sub(last)), end.Sub(to)
		} else if grants[i] > to {
			return max(longest, to.Sub(last)), grants[i].Sub(to)
		}
		longest = max(longest, grants[i].Sub(last))
		last = grants[i]
	}
}

// attempts are those on free keys, while a minority is cut off, silent, slow or lossy, and without a fault.
func (c *check) attempts() {
	kinds := []string{"cut", "delay", "loss", "freeze", "rate", "stop-master", "link", "refuse", "lost-requests", "lost-replies"}
	for _, x := range c.Calls {
		from, to := x.Asked.Add(-leastPause), x.Answered.Add(leastPause)
		if !strings.HasPrefix(x.Keys[0], "probe-") || x.Result != history.OK || c.standstill(x.Client, from, to)+c.standstill(0, from, to) > 0 {
			continue
		}
		took, isFree := ms(x.Answered.Sub(x.Asked)), true
		for _, f := range c.Faults {
			if f.From <= x.Answered && x.Asked < f.To.Add(time.Second) {
				isFree = false
			}
			if f.Alone && f.Scope == nemesis.Minority && f.From < x.Asked && x.Answered < f.To && slices.Contains(f.Hit, x.Client) && slices.Contains(kinds, f.Kind) {
				c.Attempts.Faulty = append(c.Attempts.Faulty, took)
			}
		}
		if isFree {
			c.Attempts.Healthy = append(c.Attempts.Healthy, took)
		}
	}
}
