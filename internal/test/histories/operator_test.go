package histories

import (
	"context"
	"log/slog"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/quorum"
)

// operator frees keys by hand, also held ones: by a handle of its own, by DEL, or by FLUSHALL.
// From then on the holder has no claim to the key, though it may believe so.
func (h *history) operator(id int) {
	rng := h.rng(7, id)
	var own *redlock.Client
	if h.changes == nil {
		cfg := redlock.Config{MaxTTL: maxTTL, Fenced: h.fenced, Nodes: h.Nodes, Logger: slog.New(slog.DiscardHandler)}
		h.mu.Lock()
		m := h.Machine()
		h.mu.Unlock()
		p := h.owners.process("operator", &cfg)
		c, err := m.Client(cfg)
		p.runs(c)
		switch {
		case err == nil:
			own = c
			defer p.end(false, c.Close)
		case time.Since(h.troubled()) < time.Second: // nodes refuse its probes: the operator has the clients' handles
			h.log("operator: %v", err)
		default:
			h.fail("operator: %v", err)
			return
		}
	}
	for h.pause(100*time.Millisecond + rng.N(1500*time.Millisecond)) {
		key := h.keys[0] // of those who hang
		if rng.IntN(2) == 0 {
			key = h.keys[rng.IntN(len(h.keys))]
		}
		switch n := rng.IntN(8); {
		case n < 4:
			c := h.others[rng.IntN(len(h.others))].Load()
			if own != nil && rng.IntN(2) == 0 {
				c = own
			}
			if c != nil {
				h.attachAndRelease(c, key)
			}
		case n < 7, h.fenced: // a flush would lose tokens
			h.log("operator: DEL %s", key)
			h.clear(rng, []string{key}, func(node int) { h.Servers[node].Del(key) })
		default:
			h.log("operator: FLUSHALL")
			h.clear(rng, h.keys, func(node int) { h.Servers[node].Flush() })
		}
	}
}

// attachAndRelease has an operator with a client look who holds a key, and release that lock.
func (h *history) attachAndRelease(c *redlock.Client, key string) {
	ctx, cancel := context.WithTimeout(h.ctx, time.Second)
	defer cancel()
	state, err := c.Inspect(ctx, key)
	if err != nil || state.Token() == "" {
		return
	}
	h.owners.free(key, state.Token())
	h.owners.attached(key, state.Token(), c)
	l, err := c.Attach(ctx, key, state.Token(), time.Now().Add(max(state.TTL, time.Millisecond)))
	if err == nil {
		err = l.Release(ctx)
	}
	h.log("operator: release of %s, %s: %v", key, state.Digest, err)
}

// clear has an operator remove keys by clearing nodes, in no order: a quorum of each key's.
func (h *history) clear(rng random, keys []string, clear func(node int)) {
	layouts := h.layouts()
	if h.changes != nil {
		layouts = h.changes.present()
	}
	cleared := quorum.Set(0)
	isEnough := func() bool {
		for _, key := range keys {
			if !quorumOf(key, layouts).IsQuorum(cleared) {
				return false
			}
		}
		return rng.IntN(2) == 0
	}
	for _, node := range rng.Perm(len(h.Servers)) {
		for _, key := range keys {
			if value, ok := h.Servers[node].Get(key); ok {
				h.owners.free(key, value)
			}
		}
		clear(node)
		cleared.Add(node)
		if isEnough() {
			return
		}
	}
}

// outages has all nodes fail at once, again and again: they are down, hang, or refuse.
func (h *history) outages() {
	rng := h.rng(8)
	for end := time.Now().Add(h.faulty); time.Now().Before(end) && h.pause(rng.N(2*time.Second)); {
		d, kind := 300*time.Millisecond+rng.N(2500*time.Millisecond), rng.IntN(3)
		h.log("outage: %s for %v", []string{"all are down", "all hang", "all refuse"}[kind], d)
		h.faults(1)
		for _, s := range h.Servers {
			switch kind {
			case 0:
				s.Down()
			case 1:
				s.Hang()
			default:
				refuse(s, refusals[rng.IntN(len(refusals))])
			}
		}
		h.pause(d)
		for _, s := range h.Servers {
			h.heal(s)
		}
		h.faults(-1)
	}
}
