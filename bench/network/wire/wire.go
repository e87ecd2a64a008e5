// Package wire is the network between the hosts. It reads each packet that a host sends, has the effects in force act on
// it, and writes it to its receiver. The ends are real TCP, of the kernel.
package wire

import (
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/redlock-go/redlock/bench/network/history"
)

// Hosts bounds the numbers of hosts.
const Hosts = 40

// Wire is a network.
type Wire struct {
	ports   [Hosts]*port
	effects atomic.Pointer[[]*Effect]
	change  sync.Mutex // of effects
	begun   sync.Map   // connection: the history.Time of its last SYN
	dials   [Hosts][Hosts]atomic.Int64
	mu      sync.Mutex
	rng     *rand.Rand
}

// New makes a network whose chances follow from a seed.
func New(seed uint64) *Wire {
	w := &Wire{rng: rand.New(rand.NewPCG(seed, 0x77697265))}
	w.effects.Store(&[]*Effect{})
	return w
}

// Attach begins to carry the packets of a host, until its device is closed. All are attached before one sends to another.
func (w *Wire) Attach(number int, device *os.File) {
	p := &port{device: device, wake: make(chan struct{}, 1), gone: make(chan struct{})}
	w.ports[number] = p
	go p.read(func(b packet) { w.pass(number, b) })
	go p.write()
}

// Begin puts an effect in force.
func (w *Wire) Begin(e *Effect) {
	w.change.Lock()
	defer w.change.Unlock()
	e.began = history.Now()
	all := append(slices.Clone(*w.effects.Load()), e)
	w.effects.Store(&all)
}

// End ends an effect. What it has frozen arrives now.
func (w *Wire) End(e *Effect) {
	w.change.Lock()
	rest := slices.DeleteFunc(slices.Clone(*w.effects.Load()), func(x *Effect) bool { return x == e })
	w.effects.Store(&rest)
	w.change.Unlock()
	e.mu.Lock()
	e.ended = true
	frozen := e.frozen
	e.frozen = nil
	e.mu.Unlock()
	for _, p := range frozen {
		w.deliver(p.to(), p)
	}
}

// Dials is how many connections a host has begun to another: its SYNs, with those that were sent again.
func (w *Wire) Dials(from, to int) int64 { return w.dials[from][to].Load() }

// pass carries a packet.
func (w *Wire) pass(from int, p packet) {
	if !p.isOurs() || w.ports[p.to()] == nil {
		return
	}
	if p.isDial() {
		w.dials[from][p.to()].Add(1)
		w.begun.Store(p.connection(), history.Now())
	}
	f := fate{copies: 1}
	for _, e := range *w.effects.Load() {
		if !e.act(w, from, p, &f) {
			return
		}
	}
	to, isForged := w.ports[p.to()], f.reset && p.isTCP() && !p.isReset()
	var forward, back packet
	if isForged {
		forward, back = p.resets()
	}
	if f.corrupt { // behind all that reads it
		p[w.below(len(p))] ^= 1 << w.below(8)
	}
	for range f.copies {
		to.send(p, f.at)
	}
	if isForged {
		to.send(forward, f.at)
		if w.chance(0.5) {
			w.ports[from].send(back, f.at)
		}
	}
}

// deliver has a packet arrive at once.
func (w *Wire) deliver(to int, p packet) {
	if port := w.ports[to]; port != nil {
		port.send(p, 0)
	}
}

// stands reports whether the connection of p began before a time.
func (w *Wire) stands(p packet, before history.Time) bool {
	if !p.isTCP() {
		return false
	}
	at, ok := w.begun.Load(p.connection())
	return !ok || at.(history.Time) < before
}

func (w *Wire) chance(share float64) bool {
	if share <= 0 || share >= 1 {
		return share >= 1
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.Float64() < share
}

func (w *Wire) below(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}
