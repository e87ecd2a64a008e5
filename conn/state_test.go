package conn

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/scripted"
)

func (r *testFleet) look(node int) (n Node) {
	r.do(func() { n = r.Node(node) })
	return n
}

// TestNodeOverItsLife: what is reported of one that comes up, is asked, dies and
// comes back.
func TestNodeOverItsLife(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		peers := scripted.NewN(t, 2)
		r := newTestFleet(t, portable, peers)
		r.up()
		addr := peers[1].Addr
		require.Equal(t, Node{Addr: addr, Up: true, Server: Server{Product: "redis", Version: "7.0.15", RunID: peers[1].RunID}, Connection: 1, Pushes: true, History: History{Connects: 1}}, r.look(1))

		l := r.send("a", "b", "c")
		require.Equal(t, 3, r.look(1).InFlight)
		r.wires[1].Expect(string(l.Buf))
		r.clock.Advance(8 * time.Millisecond)
		r.wires[1].Send(echoes("a", "b"))
		r.until("for two replies", func() bool { return l.nodes[1].replies == 2 })
		n := r.look(1)
		require.Equal(t, 1, n.InFlight)
		require.Zero(t, n.RoundTrips, "the last reply ends it")
		r.clock.Advance(8 * time.Millisecond)
		r.wires[1].Send(echoes("c"))
		r.until("for the third", func() bool { return l.nodes[1].ended })
		want := Node{Addr: addr, Up: true, Server: Server{Product: "redis", Version: "7.0.15", RunID: peers[1].RunID}, Connection: 1, Pushes: true,
			History: History{Connects: 1, RoundTrips: 1, RoundTrip: 16 * time.Millisecond, RoundTripMax: 16 * time.Millisecond}}
		require.Equal(t, want, r.look(1))
		require.Equal(t, 3, r.look(0).InFlight, "each node has its own")

		one := r.sendTo(1, "alone") // 0 ms, of which an eighth counts
		r.answer(one, 1)
		r.awaitDone(one)
		want.RoundTrips, want.RoundTrip = 2, 14*time.Millisecond
		require.Equal(t, want, r.look(1))

		r.wires[1].Cut()
		r.lose(1)
		n = r.look(1)
		if !n.Up { // a dialer may have been quicker
			var why *Error
			require.True(t, errors.As(n.Err, &why))
			require.Equal(t, addr, why.Addr)
			require.NotErrorIs(t, n.Err, ErrNotSent, "that is for batches only")
		}
		r.up()
		want.Connects, want.Connection = 2, 2
		require.Equal(t, want, r.look(1), "what was measured is remembered")

		r.do(r.Close)
		n = r.look(1)
		require.False(t, n.Up)
		require.ErrorIs(t, n.Err, ErrClosed)
	})
}

// TestUpAndDownAreReported once each, with the state that is news, and not when the
// fleet is closed.
func TestUpAndDownAreReported(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		var r *testFleet
		var reported []Node // under the lock
		ready := make(chan struct{})
		report := func(node int) {
			<-ready // New has not returned yet
			reported = append(reported, r.Node(node))
		}
		peers := scripted.NewN(t, 1)
		r = newTestFleet(t, portable, peers, func(c *Config) { c.OnUp, c.OnDown = report, report })
		close(ready)
		for i := range uint64(3) {
			r.up()
			r.do(func() {
				require.Len(t, reported, int(2*i+1))
				require.True(t, reported[2*i].Up)
				require.NoError(t, reported[2*i].Err)
				require.Equal(t, i+1, reported[2*i].Connects)
				require.Equal(t, i+1, reported[2*i].Connection)
				require.True(t, reported[2*i].Pushes)
			})
			r.wires[0].Cut()
			r.lose(0)
			r.do(func() {
				require.GreaterOrEqual(t, len(reported), int(2*i+2))
				require.False(t, reported[2*i+1].Up)
				require.Error(t, reported[2*i+1].Err)
				require.Zero(t, reported[2*i+1].Connection)
				require.False(t, reported[2*i+1].Pushes)
			})
		}
		r.up()
		r.do(func() {
			reported = nil
			r.Close()
			require.Empty(t, reported)
		})
	})
}

// steppingClock moves by a nanosecond with each reading.
type steppingClock struct{ readings atomic.Int64 }

func (c *steppingClock) Now() clock.Instant { return clock.Instant(c.readings.Add(1)) }

// TestRoundTripsAreTheNodesOwn: replies that are found in one sweep were read one after
// the other.
func TestRoundTripsAreTheNodesOwn(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		peers := scripted.NewN(t, 3)
		r := newTestFleet(t, portable, peers, func(c *Config) { knobs.OfConn(c).Clock = new(steppingClock) })
		r.up()
		l := r.send("a")
		for _, w := range r.wires {
			w.Expect(string(l.Buf))
		}
		r.do(func() { // with the lock, so that no other goroutine sweeps
			for _, w := range r.wires {
				w.Send(echoes("a"))
			}
			testkit.Await(t, "all replies", func() bool {
				r.Sweep(0)
				return !slices.ContainsFunc(r.nodes, func(n *node) bool { return n.owed.len > 0 })
			})
			trips := map[time.Duration]bool{}
			for i := range peers {
				trips[r.Node(i).RoundTrip] = true
			}
			require.Len(t, trips, len(peers))
		})
	})
}
