package checker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/bench/network/history"
	"github.com/redlock-go/redlock/bench/network/nemesis"
)

// The masters of a group: the numbers of the first group begin with firstMaster.
const (
	firstMaster = 11
	masters     = 5
)

// places: a key is at the masters of one group. While groups change it may be in two.
func (c *check) places() {
	c.groups = map[string]int{}
	if !c.Groups || c.Change {
		return
	}
	for _, s := range c.Seen {
		if strings.HasPrefix(s.Key, "redlock:") { // of each group
			continue
		}
		g := (s.Master - firstMaster) / masters
		if before, ok := c.groups[s.Key]; ok && before != g {
			c.found(Strayed, c.Library, s.At, "%s: at master %d, and in group %d before", s.Key, s.Master, before)
		}
		c.groups[s.Key] = g
	}
	c.Counts["keys of known groups"] = len(c.groups)
}

// mastersOf are those of a key's group. Of several groups it is known for keys that were seen.
func (c *check) mastersOf(key string) (all []int) {
	g, ok := c.groups[key]
	if c.Groups && !ok {
		return nil
	}
	for i := range masters {
		all = append(all, firstMaster+masters*g+i)
	}
	return all
}

// isOf reports whether a fault may touch masters of a key.
func (c *check) isOf(f *history.Fault, key string) bool {
	of := c.mastersOf(key)
	return f.Masters == nil || of == nil || slices.ContainsFunc(f.Masters, func(m int) bool { return slices.Contains(of, m) })
}

// silences reports whether a fault has kept a quorum of a key's masters from a client for all of a time.
func (c *check) silences(f *history.Fault, client int, key string, from, to history.Time) bool {
	silent := []string{"cut", "cut-client", "link", "link-client", "refuse", "lost-requests", "lost-replies", "stop-master"}
	return f.Scope == nemesis.Majority && slices.Contains(silent, f.Kind) && slices.Contains(f.Hit, client) &&
		(f.Masters == nil || c.mastersOf(key) != nil && c.isOf(f, key)) && f.From <= from && to <= f.To
}

// quorums: no lock is granted without a quorum of its key's group, unless its process has had it before and passes it on. A fault
// takes a moment to begin and to end.
func (c *check) quorums() {
	const moment = 200 * time.Millisecond
	for _, x := range c.Calls {
		isNew := x.Library != history.Ours || x.Digest != "" && c.first[x.Digest] == x.Answered
		if x.Result != history.OK || !isNew || x.Library == history.Front || c.Change {
			continue
		}
		for _, f := range c.Faults {
			for _, k := range x.Got {
				from := x.Asked.Add(-moment - c.standstill(0, f.From, x.Asked))
				if f.Alone && c.silences(f, x.Client, k, from, x.Answered.Add(moment)) {
					c.found(Unbacked, x.Library, x.Answered, "%s %s of %s [%s, %s]: granted without a quorum of its nodes", x.Worker, x.API, k, c.at(x.Asked), c.at(x.Answered))
				}
			}
		}
	}
}

// names: Inspect shows a lock with the name of its call.
func (c *check) names() {
	for _, x := range c.Calls {
		if x.Digest == "" {
			continue
		}
		for _, b := range c.breaks[x.Digest] {
			if b.Holder != cmp.Or(x.Options.Name, fmt.Sprint("client", x.Client)) {
				c.found(Misnamed, x.Library, x.Answered, "%s: held by %s, and Inspect shows %q", b.Key, x.Worker, b.Holder)
			}
		}
	}
}
