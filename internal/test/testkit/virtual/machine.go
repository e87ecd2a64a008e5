package virtual

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/base/knobs"
)

// Machine has the clocks of clients. While it is suspended its monotonic clock stands still, and
// its network. Its goroutines go on: this stands for any goroutine about to run at the suspension,
// going on at the wake-up.
type Machine struct {
	Name string
	Wrap func(net.Conn) net.Conn // if set, gives its clients' dialed connections another face
	Read func()                  // if set, is called before each reading of its clock; it does not block
	net  *Network

	mu    sync.Mutex
	made  time.Time
	slept time.Duration
	depth int           // of Suspend
	since time.Time     // when it was suspended, or zero
	ahead time.Duration // of the clock with suspensions, by Skip
	seen  time.Duration // the suspensions until the last reading
	awake time.Duration // time of freezing and thawing, on both clocks
	links map[string]*Link
}

// Link is that to an address.
func (m *Machine) Link(addr string) *Link {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.links[addr]
	if l == nil {
		l = m.net.Link(m.Name, addr)
		if m.depth > 0 {
			l.Hold(true, true)
		}
		m.links[addr] = l
	}
	return l
}

// Suspend stops the clock and the network of the machine, until as many calls of Wake.
func (m *Machine) Suspend() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.depth++
	if m.depth > 1 {
		return
	}
	m.since = time.Now()
	for _, l := range m.links {
		l.Hold(true, true)
	}
}

// Slept is the time of suspensions until now.
func (m *Machine) Slept() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.slept
	if !m.since.IsZero() {
		d += time.Since(m.since)
	}
	return d
}

// Wake undoes one Suspend.
func (m *Machine) Wake() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.depth--
	if m.depth > 0 {
		return
	}
	m.slept += time.Since(m.since)
	m.since = time.Time{}
	for _, l := range m.links {
		l.Release()
	}
}

// Skip sets the clocks of the machine as if it had been suspended for d until now. No time passes
// for the others.
func (m *Machine) Skip(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ahead += d
}

func (m *Machine) clocks() clock.Source {
	return clock.Source{Monotonic: m.monotonic, Ahead: m.asleep}
}

// toFreeze is the least time a machine is awake while it goes to sleep and wakes.
const toFreeze = time.Millisecond

// monotonic is read by goroutines going on at the wake-up, if the machine is suspended.
func (m *Machine) monotonic() time.Duration {
	if m.Read != nil {
		m.Read()
	}
	slept := m.Slept()
	m.mu.Lock()
	defer m.mu.Unlock()
	if all := slept + m.ahead; m.seen != all {
		m.seen = all
		m.awake += toFreeze
	}
	return time.Since(m.made) - slept + m.awake
}

func (m *Machine) asleep() (time.Duration, bool) {
	slept := m.Slept()
	m.mu.Lock()
	defer m.mu.Unlock()
	return slept + m.ahead, true
}

func (m *Machine) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := m.net.Dialer(m.Name)(ctx, network, addr)
	if err == nil && m.Wrap != nil {
		c = m.Wrap(c)
	}
	return c, err
}

// TimeOfDay is time.Now in this century: a bubble begins in the year 2000, too early for the clock
// of a fenced client.
func TimeOfDay() time.Time { return time.Now().AddDate(30, 0, 0) }

// making is held from before a client is made until its clock is.
var making sync.Mutex

// Client makes a client on the machine.
func (m *Machine) Client(cfg redlock.Config) (*redlock.Client, error) {
	for _, addr := range slices.Concat(cfg.Nodes, cfg.NextNodes) {
		m.Link(addr)
	}
	if cfg.Dialer == nil {
		cfg.Dialer = m.dial
	}
	if knobs.Of(&cfg).FenceClock == nil {
		knobs.Of(&cfg).FenceClock = TimeOfDay
	}
	making.Lock()
	var undo func()
	made := sync.OnceFunc(func() {
		undo()
		making.Unlock()
	})
	defer made() // where cfg is wrong
	undo = clock.Play(func() clock.Source {
		made()
		return m.clocks()
	})
	return redlock.New(cfg)
}
