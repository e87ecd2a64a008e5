package contention_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/rules/contention"
	"github.com/redlock-go/redlock/quorum"
)

// TestStates shows each state of a contender, and its action after each event. enter+ has the node track the key too.
func TestStates(t *testing.T) {
	type (
		c = *contention.Contender
		s = *contention.Surroundings
	)
	const all quorum.Set = 7
	enter := func(e contention.Entry) func(c, s) { return func(c c, s s) { c.Entered(s, c.Next(s), e) } }
	see := func(seen contention.Seen) func(c, s) {
		return func(c c, s s) {
			c.Denied(s, all)
			c.Watched(s, c.Next(s).Node, seen)
		}
	}
	seat := func(c c) int { return max(0, c.Nodes().Least()) }
	alone := enter(contention.Entry{First: true, Lease: time.Minute})
	first := enter(contention.Entry{First: true, Others: 1, Lease: time.Second})
	states := map[string][]func(c, s){
		"out":            nil,
		"behind":         {enter(contention.Entry{Others: 2, Lease: 3 * time.Second, Left: time.Second})},
		"first,free":     {alone},
		"first,unknown":  {first},
		"first,tracked":  {alone, see(contention.Seen{TTL: time.Minute})},
		"gating,stepped": {alone, see(contention.Seen{TTL: time.Minute, Steps: true})},
		"last":           {first, func(c c, s s) { c.Won(s, 0, -1) }},
		"polling":        {alone, func(c c, s s) { c.Denied(s, 0); c.Next(s) }},
		"gap:due":        {alone, func(c c, s s) { c.Due(s.Now, 0) }},
		"gap:open":       {enter(contention.Entry{Gap: true, Others: 1, Lease: 3 * time.Second, Left: 200 * time.Millisecond})},
	}
	events := map[string]func(c, s){
		"nothing": func(c, s) {},
		"rung":    func(c c, s s) { c.Rung(s.Now, seat(c)) },
		"changed": func(c c, _ s) { c.Pushed(seat(c)) },
		"denied":  func(c c, s s) { c.Denied(s, all) },
		"failed":  func(c c, s s) { c.Denied(s, 0) }, // no holder has denied it
		"won":     func(c c, s s) { c.Won(s, 0, -1) },
		"parted":  func(c c, s s) { c.Won(s, 0, seat(c)) }, // won, and its place is gone
		"lost":    func(c c, s s) { s.Usable &^= c.Nodes() },
		"alldown": func(_ c, s s) { s.Usable = 0 },
		"freed":   func(c c, _ s) { c.Freed() },
		"later":   func(_ c, s s) { s.Now = s.Now.Add(2 * time.Minute) },
		"shares":  func(_ c, s s) { s.Shared = true }, // the next caller
		"hurried": func(c c, s s) { c.Hurry(s.Now) },
		"left":    func(c c, _ s) { c.Depart() },
		"looked":  func(c c, s s) { c.Looked(s, false) }, // and has seen a holder
	}
	table := strings.Fields(`
	-              nothing rung    changed denied  failed  won     parted  lost    alldown freed   later   shares  hurried left    looked
	out            enter   enter   enter   enter   pause   enter   enter   enter   attempt enter   enter   enter   enter   enter   enter
	behind         pause   watch   pause   pause   leave   enter   enter   enter   attempt pause   enter   enter   look    enter   pause
	first,free     attempt attempt attempt watch   leave   watch   enter   enter   attempt attempt enter   enter   attempt enter   attempt
	first,unknown  watch   watch   watch   watch   leave   enter   enter+  enter+  attempt attempt enter   enter   watch   enter   watch
	first,tracked  pause   pause   attempt watch   leave   watch   enter   enter   pause   attempt enter+  enter   look    enter   watch
	gating,stepped pause   pause   watch   watch   leave   watch   enter   enter   pause   attempt enter   enter   look    enter   watch
	last           enter   enter   enter   enter   leave   enter   enter+  enter+  attempt enter   enter   enter   enter   enter   enter
	polling          pause   pause   pause   enter   pause   enter   attempt pause   pause   attempt attempt pause   attempt pause   pause
	gap:due        enter   enter   enter   watch   leave   watch   enter   enter   pause   enter   enter   enter   enter   enter   enter
	gap:open       pause   watch   pause   pause   leave   enter   enter+  enter+  pause   pause   enter   enter   pause   enter   pause
	`)
	names := table[1 : len(events)+1]
	do := [...]string{contention.Pause: "pause", contention.Attempt: "attempt", contention.Enter: "enter", contention.Leave: "leave", contention.Watch: "watch", contention.Look: "look"}
	rows := table[len(events)+1:]
	require.Len(t, rows, len(states)*(len(events)+1))
	for ; len(rows) > 0; rows = rows[len(events)+1:] {
		for i, name := range names {
			c, s := contend()
			c.Queues(s.Now.Add(time.Second))
			for _, f := range append(states[rows[0]], events[name]) {
				f(c, s)
			}
			step := c.Next(s)
			did := do[step.Action]
			if step.Tracks {
				did += "+"
			}
			require.Equal(t, rows[i+1], did, "%s, and then: %s", rows[0], name)
		}
	}
}
