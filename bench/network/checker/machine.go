package checker

import (
	"slices"
	"time"

	"github.com/redlock-go/redlock/bench/network/history"
)

// standstill is for how long a process did not run between two times. Of its threads that were ready and had no processor, one
// may have what all wait for: for each look at them the worst counts.
func (c *check) standstill(client int, from, to history.Time) (d time.Duration) {
	threads := map[history.Time]time.Duration{}
	var all time.Duration
	for _, p := range c.pauses[client] {
		part := min(p.To, to).Sub(max(p.From, from))
		switch {
		case part <= 0:
		case p.Thread:
			threads[p.To] = max(threads[p.To], min(p.Waited, part))
		default:
			all += part
		}
	}
	for _, part := range threads {
		d += part
	}
	return min(max(d, all), to.Sub(from))
}

// longest is the longest time between two others for which the wire, or one of the clients that a fault does not stop, did not run.
func (c *check) longest(from, to history.Time, except []int) (worst time.Duration) {
	for client, list := range c.pauses {
		for _, p := range list {
			if !slices.Contains(except, client) && !p.Thread && p.From < to && p.To > from {
				worst = max(worst, p.To.Sub(p.From))
			}
		}
	}
	return worst
}

// busy is a pause from which on figures are those of the machine's other work.
const busy = 150 * time.Millisecond

// excused reports whether something that is late by d between two times may be the machine's fault.
func (c *check) excused(client int, from, to history.Time, d, allowed time.Duration) bool {
	if d-c.standstill(client, from, to) <= allowed {
		return true
	}
	return c.longest(from, to, nil) > busy
}

// StoodStill is for how long the wire did not run in all.
func StoodStill(h *history.History) (d time.Duration) {
	for _, p := range h.Pauses {
		if p.Client == 0 {
			d += p.To.Sub(p.From)
		}
	}
	return d
}
