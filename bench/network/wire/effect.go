package wire

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/bench/network/history"
)

// Effect is what a fault does to the packets of some links. What is zero does nothing. Shares are of packets, 0 to 1.
type Effect struct {
	Drop      float64
	Delay     time.Duration
	Jitter    time.Duration // the delay is this much longer or shorter
	InOrder   bool          // no packet overtakes another because of the jitter
	Reorder   float64       // sent ahead of the others
	Duplicate float64
	Corrupt   float64       // a bit flips; the kernel of the receiver finds the wrong checksum
	Rate      int           // bytes a second, of each link
	Backlog   time.Duration // more than this much waits for no Rate
	Largest   int           // larger packets vanish, as where no ICMP comes back from a smaller MTU
	Stale     bool          // connections that stand vanish: a firewall has lost its state
	Reset     float64       // followed by forged resets, as of a middlebox
	Freeze    bool          // packets wait for the end, and come all at once
	Refuse    Refusal       // packets are answered in place of the receiver

	links  [Hosts][Hosts]bool // from, to
	off    atomic.Bool
	began  history.Time
	mu     sync.Mutex
	ended  bool
	free   [Hosts][Hosts]history.Time // when what was sent before has left a link with a Rate
	last   [Hosts][Hosts]history.Time // when the last packet arrives, InOrder
	frozen []packet
}

// Refusal is the answer of a host that takes no connections, or of a firewall before it.
type Refusal uint8

// The refusals: a reset, and codes of ICMP.
const (
	NotRefused Refusal = iota
	ByReset
	NetUnreachable
	PortUnreachable
	Prohibited
)

// codes are those of destination unreachable.
var codes = map[Refusal]byte{NetUnreachable: 0, PortUnreachable: 3, Prohibited: 10}

// OneWay adds the links of some hosts to others.
func (e *Effect) OneWay(from, to []int) *Effect {
	for _, a := range from {
		for _, b := range to {
			e.links[a][b] = true
		}
	}
	return e
}

// Between adds the links of some hosts to others, and back.
func (e *Effect) Between(some, others []int) *Effect {
	return e.OneWay(some, others).OneWay(others, some)
}

// Flip switches the effect off for the moment, or on again.
func (e *Effect) Flip() { e.off.Store(!e.off.Load()) }

// fate is what becomes of a packet.
type fate struct {
	at             history.Time // when it arrives; 0: now
	copies         int
	reset, corrupt bool
}

// act has the effect do to p what it does. It returns false if p does not arrive, at least not now.
func (e *Effect) act(w *Wire, from int, p packet, f *fate) bool {
	to := p.to()
	switch {
	case !e.links[from][to] || e.off.Load():
		return true
	case w.chance(e.Drop), e.Largest > 0 && len(p) > e.Largest, e.Stale && w.stands(p, e.began):
		return false
	case e.Refuse != NotRefused:
		if !p.isTCP() {
			return false
		} else if code, ok := codes[e.Refuse]; ok {
			w.deliver(from, p.unreachable(code))
		} else if !p.isReset() {
			_, back := p.resets()
			w.deliver(from, back)
		}
		return false
	case e.Freeze && e.hold(p):
		return false
	}
	if e.Delay > 0 || e.Rate > 0 {
		at, ok := e.late(w, from, to, len(p), max(f.at, history.Now()))
		if !ok {
			return false
		}
		f.at = at
	}
	if w.chance(e.Duplicate) {
		f.copies++
	}
	f.corrupt = f.corrupt || w.chance(e.Corrupt)
	f.reset = f.reset || w.chance(e.Reset)
	return true
}

// hold keeps p until the end of the effect.
func (e *Effect) hold(p packet) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ended {
		e.frozen = append(e.frozen, slices.Clone(p))
	}
	return !e.ended
}

// late is when a packet that is sent at a time arrives. It returns false if too many wait before it.
func (e *Effect) late(w *Wire, from, to, size int, at history.Time) (history.Time, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.Rate > 0 {
		start := max(at, e.free[from][to])
		if e.Backlog > 0 && start.Sub(at) > e.Backlog {
			return 0, false
		}
		at = start.Add(time.Duration(size) * time.Second / time.Duration(e.Rate))
		e.free[from][to] = at
	}
	delay := e.Delay
	if e.Jitter > 0 {
		delay += time.Duration(w.below(int(2*e.Jitter))) - e.Jitter
	}
	if !w.chance(e.Reorder) {
		at = at.Add(max(delay, 0))
	}
	if e.InOrder {
		at = max(at, e.last[from][to])
		e.last[from][to] = at
	}
	return at, true
}
