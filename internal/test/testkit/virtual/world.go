package virtual

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
)

// World is masters, and a network between them and machines with clients.
type World struct {
	T       *testing.T // of the bubble: its Context, not that of the test around it
	Net     *Network
	Servers fakeredis.Servers
	Nodes   []string // their addresses

	machines int
	clients  []*redlock.Client
}

// Run makes a world with n masters, has f use it in a bubble, and closes all that is left. The test
// fails if a goroutine is left then.
func Run(t *testing.T, n int, f func(w *World), opts ...fakeredis.Options) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := New(t, 0, n, opts...)
		defer w.Close()
		f(w)
	})
}

// New makes a world inside a bubble. The round trip takes 200 us and up to 100 us more. A master
// has the options at its index, or the last ones given.
func New(t *testing.T, seed uint64, n int, opts ...fakeredis.Options) *World {
	t.Helper()
	w := &World{T: t, Net: &Network{seed: seed, listeners: map[string]*listener{}, links: map[[2]string]*Link{}}}
	if len(opts) == 0 {
		opts = make([]fakeredis.Options, 1)
	}
	for i := range n {
		o := opts[min(i, len(opts)-1)]
		o.Addr, o.Listen = fmt.Sprintf("node%d:6379", i), w.Net.Listen
		s, err := fakeredis.Start(o)
		require.NoError(t, err)
		w.Servers, w.Nodes = append(w.Servers, s), append(w.Nodes, s.Addr())
	}
	return w
}

// Client makes a client on a new machine.
func (w *World) Client(change ...func(*redlock.Config)) *redlock.Client {
	w.T.Helper()
	c, _ := w.ClientOn(w.Machine(), change...)
	return c
}

// Machine makes a running machine.
func (w *World) Machine() *Machine {
	w.machines++
	return &Machine{Name: fmt.Sprintf("client%d", w.machines), net: w.Net, made: time.Now(), links: map[string]*Link{}}
}

// ClientOn makes a client on a machine.
func (w *World) ClientOn(m *Machine, change ...func(*redlock.Config)) (*redlock.Client, *Machine) {
	w.T.Helper()
	cfg := redlock.Config{Nodes: w.Nodes, Logger: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&cfg)
	}
	c, err := m.Client(cfg)
	require.NoError(w.T, err)
	w.clients = append(w.clients, c)
	return c, m
}

// Close closes the clients and the masters.
func (w *World) Close() {
	for _, c := range w.clients {
		_ = c.Close()
	}
	for _, s := range w.Servers {
		_ = s.Close()
	}
}

// Holders is how many masters have a key.
func (w *World) Holders(key string) int { return w.Servers.Holders(key) }
