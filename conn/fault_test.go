package conn

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/scripted"
)

// A reply to a command that the kernel has not taken yet in whole.
func TestAnswersToHalfARequest(t *testing.T) {
	onBothPaths(t, 2, func(t *testing.T, r *testFleet) {
		l := r.sendLarge(16<<20, "large")
		r.do(func() { require.Positive(t, r.waiting(0)) })
		behind := r.send("behind")
		w := r.wires[0]
		s := r.socket(0)
		w.Send(echoes("large"))
		r.until("for the reply", func() bool { return l.nodes[0].replies == 1 })
		require.True(t, s != r.socket(0), "the connection is kept")
		r.wires[0] = nil
		assert.NoError(t, l.errOf(0), "it was a reply")
		assert.ErrorIs(t, behind.errOf(0), ErrUnsolicited)
		assert.ErrorIs(t, behind.errOf(0), ErrNotSent)
		r.up()
	})
}

// Silence ends a connection after the stall bound, but only where something is owed, and every reply begins it anew.
func TestSilence(t *testing.T) {
	const bound = defaultStallTimeout
	onBothPaths(t, 2, func(t *testing.T, r *testFleet) {
		idle := r.socket(0)
		r.clock.Advance(10 * bound)
		r.do(r.Check)
		assert.Same(t, idle, r.socket(0), "silent, as it should be")

		l := r.send("first", "second")
		r.clock.Advance(bound)
		r.do(r.Check)
		assert.Same(t, idle, r.socket(0), "not longer than the bound")
		for _, w := range r.wires {
			w.Expect(string(l.Buf))
			w.Send(echoes("first"))
		}
		r.until("for the replies", func() bool { return l.nodes[0].replies+l.nodes[1].replies == 2 })
		r.wires[1].Send(echoes("second"))
		r.until("for node 1 to end", func() bool { return l.nodes[1].ended })
		r.clock.Advance(bound)
		r.do(r.Check)
		assert.Same(t, idle, r.socket(0), "it has sent a reply")
		r.clock.Advance(2)
		r.do(r.Check)
		require.ErrorIs(t, l.errOf(0), ErrStalled)
		assert.NotErrorIs(t, l.errOf(0), ErrNotSent)
		assert.NoError(t, l.errOf(1), "this one owed nothing")
		r.wires[0] = nil
		r.up()
		r.works()
	})
}

// The replies that a queue owes are bounded, and the bytes of what is asked. Both are given back with the replies. The
// batch that is too much is not sent, nor is any other until the node has caught up.
func TestMaxInFlight(t *testing.T) {
	for name, test := range map[string]struct {
		set  func(*Config)
		full string
	}{
		"replies": {func(cfg *Config) { cfg.MaxInFlight = 5 }, "one more"},
		"bytes":   {func(cfg *Config) { cfg.MaxInFlightBytes = 300 }, strings.Repeat("x", 300)},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
				r := newUpFleet(t, portable, 2, test.set)
				for range 100 {
					r.works()
				}
				fits := r.send(tagsOf(5)...)
				assert.Zero(t, fits.doneCalls)
				r.wires[0].Expect(string(fits.Buf))
				r.answer(fits, 1)
				r.until("for node 1 to have room", func() bool { return fits.nodes[1].ended })
				full := r.send(test.full)
				assert.ErrorIs(t, full.errOf(0), ErrFull)
				assert.ErrorIs(t, full.errOf(0), ErrNotSent)
				r.answer(full, 1)
				r.awaitDone(full)
				assert.NoError(t, full.errOf(1))
				r.do(func() { assert.ErrorIs(t, r.Fleet.Fault(0), ErrFull) })

				r.wires[0].Send(echoes(fits.tags[:4]...))
				r.until("for four replies", func() bool { return fits.nodes[0].replies == 4 })
				full = r.send("x") // there is room, and all would be late
				assert.ErrorIs(t, full.errOf(0), ErrFull)
				r.answer(full, 1)
				r.wires[0].Send(echoes(fits.tags[4:]...))
				r.awaitDone(fits, full)
				assert.NoError(t, fits.errOf(0), "a node that is behind keeps its connection")
				r.works()
			})
		})
	}
}

// The first batch of a connection is not counted: a node to which there is much to say
// at first is not behind for that.
func TestMaxInFlightBesideTheBeginning(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		var r *testFleet
		var first *ledger
		ready := make(chan struct{})
		r = newTestFleet(t, portable, scripted.NewN(t, 1), func(cfg *Config) {
			cfg.MaxInFlight = 2
			cfg.OnUp = func(int) {
				<-ready // New has not returned yet
				if first == nil {
					first = newLedger(t, tagsOf(5))
					r.giveTo(0, first)
				}
			}
		})
		close(ready)
		r.up()
		fits := r.send("one", "two")
		r.wires[0].Expect(string(first.Buf) + string(fits.Buf))
		r.wires[0].Send(echoes(first.tags[:4]...))
		r.until("for four replies", func() bool { return first.nodes[0].replies == 4 })
		require.Zero(t, first.doneCalls+fits.doneCalls)
		full := r.send("three")
		assert.ErrorIs(t, full.errOf(0), ErrFull)
		r.wires[0].Cut()
		r.awaitDone(first, fits, full)
		r.do(func() { assert.Nil(t, r.nodes[0].opening, "it is kept when it has failed") })
		r.wires[0] = nil
		r.up()
	})
}
