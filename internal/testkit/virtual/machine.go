package virtual

import (
	"sync"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/clock"
)

// Machine has the clocks of clients. While it is suspended its monotonic clock stands still,
// and its network; its goroutines go on, which stands for any that was about to run when the
// machine was suspended, and goes on when it wakes.
type Machine struct {
	Name string
	net  *Network

	mu    sync.Mutex
	made  time.Time
	slept time.Duration
	since time.Time // when it was suspended, or zero
	links map[string]*Link
}

// NewMachine makes one that runs.
func NewMachine(n *Network, name string) *Machine {
	return &Machine{Name: name, net: n, made: time.Now(), links: map[string]*Link{}}
}

// Link is that to an address.
func (m *Machine) Link(addr string) *Link {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.links[addr]
	if l == nil {
		l = m.net.Link(m.Name, addr)
		m.links[addr] = l
	}
	return l
}

// Suspend stops the clock and the network of the machine.
func (m *Machine) Suspend() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.since = time.Now()
	for _, l := range m.links {
		l.Hold(true, true)
	}
}

// Wake undoes Suspend.
func (m *Machine) Wake() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.slept += time.Since(m.since)
	m.since = time.Time{}
	for _, l := range m.links {
		l.Release()
	}
}

func (m *Machine) clocks() clock.Source {
	return clock.Source{Monotonic: m.monotonic, Boottime: m.boottime}
}

func (m *Machine) monotonic() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := time.Since(m.made) - m.slept
	if !m.since.IsZero() {
		d -= time.Since(m.since)
	}
	return d
}

func (m *Machine) boottime() (time.Duration, bool) { return time.Since(m.made), true }

// TimeOfDay is time.Now in this century: a bubble begins in the year 2000, which no clock of a
// fenced client may read.
func TimeOfDay() time.Time { return time.Now().AddDate(30, 0, 0) }

// making is held from before a client is made to when its clock is.
var making sync.Mutex

// Client makes a client that runs on the machine.
func (m *Machine) Client(cfg redlock.Config) (*redlock.Client, error) {
	for _, addr := range cfg.Nodes {
		m.Link(addr)
	}
	cfg.Dialer = m.net.Dialer(m.Name)
	if cfg.FenceClock == nil {
		cfg.FenceClock = TimeOfDay
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
