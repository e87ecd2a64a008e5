package waiting

import (
	"time"

	"github.com/redlock-go/redlock/internal/wire/command"
)

// A gate has the nodes deny a lock to new sharers of a lock. A process that wants the lock for itself has its turn, and waits
// for the present sharers to leave. A gate is advice: if a node misses its begin or end, this costs a second at most.

// regate is after how long a gate is put up again, before it ends; and in a gap, where the gate of another may have
// replaced it, and have been taken down.
const (
	regate      = command.GateLasts / 3
	regateInGap = 20 * time.Millisecond
)

// gate compares what the contender wants of the nodes with what they were asked last. A gate is put up, and again where
// the last is older. It is taken down where no caller wants it any more.
func (d *desk) gate() {
	wants := d.first != nil && d.Gates()
	switch {
	case d.gated != 0 && !wants:
		d.gated = 0
		d.sendGate(false)
	case wants:
		pause := regate
		if d.Clears() {
			pause = regateInGap
		}
		if now := d.lines.cfg.Clock.Now(); d.gated == 0 || now >= d.gated.Add(pause) {
			d.gated = now
			d.sendGate(true)
		}
	}
}

// sendGate asks each node. Questions of a node keep their order: the last one is about the last gate.
func (d *desk) sendGate(up bool) {
	cfg := &d.lines.cfg
	for node := range cfg.Nodes {
		q := cfg.Engine.Query(node, cfg.QueryTimeout)
		q.Buf, q.Replies = command.AppendGate(q.Buf, d.key, d.lines.tracking.id, up)
		cfg.Engine.AskSoon(q)
		q.Free()
	}
	d.shard.asks = true
}
