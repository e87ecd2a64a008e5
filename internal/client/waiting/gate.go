package waiting

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/rules/contention"
	"github.com/redlock-go/redlock/internal/wire/command"
)

// A gate has the nodes let none share a lock who does not yet: a process that wants the lock for itself has its turn,
// and waits for those who do. It is advice: one that a node has missed, or keeps, costs a second at most.

// regate is after how long a gate is put up again, before it ends; and in a gap, where the gate of another may have
// replaced it, and have been taken down.
const (
	regate      = command.GateLasts / 3
	regateInGap = 20 * time.Millisecond
)

// gate puts up a gate where the contender wants one, again where the last is older.
func (d *desk) gate(now clock.Instant) {
	pause := regate
	if d.Clears() {
		pause = regateInGap
	}
	if d.Gates() && (d.gated == 0 || now >= d.gated.Add(pause)) {
		d.gated = now
		d.sendGate(true)
	}
}

// ungate takes the gate down that the contender wants no more: its caller has the lock, or has left.
func (d *desk) ungate() {
	if d.gated != 0 && !(d.first != nil && d.Gates()) {
		d.gated = 0
		d.sendGate(false)
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

// sees reads the replies of a watch: what is in the way of the callers, for so long.
func (p *tracking) sees(x *inquiry, said []command.Said) (contention.Seen, error) {
	ttl, err := p.isTracked(x.step.Node, &said[0], &said[1])
	if err != nil {
		return contention.Seen{}, err
	}
	holders := said[2].OfType // of a shared lock
	if !x.shared {
		return contention.Seen{TTL: ttl, Steps: holders}, nil
	}
	if ttl != 0 && !holders {
		return contention.Seen{TTL: ttl}, nil
	}
	ttl, err = p.isTracked(x.step.Node, &said[3], &said[4])
	return contention.Seen{TTL: ttl, Steps: true}, err
}
