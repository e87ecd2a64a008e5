package conn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/scripted"
)

// closeIdle has a server close the connection of a node that was idle, and waits until its end has arrived, unread.
func (r *testFleet) closeIdle(node int) {
	r.t.Helper()
	r.clock.Advance(time.Second)
	require.NoError(r.t, r.wires[node].Close())
	r.wires[node] = nil
	testkit.Await(r.t, "the end to arrive", func() bool {
		r.lock.Lock()
		defer r.lock.Unlock()
		return r.poll(0).Has(node)
	})
}

// TestIdleConnectionIsReplaced: a batch that finds an idle connection closed is written to the next one. To its owner
// the node is up all the time.
func TestIdleConnectionIsReplaced(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		r := newUpFleet(t, portable, 2, func(cfg *Config) {
			cfg.OnDown = func(int) { t.Error("before anything has happened") }
		})
		var downs []bool // whether it rests
		r.do(func() { r.cfg.OnDown = func(node int) { downs = append(downs, r.Node(node).Rests) } })
		for range 3 {
			r.closeIdle(0)
			l, one, more := newLedger(t, []string{"a", "b"}), newLedger(t, []string{"meant for one connection"}), newLedger(t, []string{"c"})
			r.do(func() { // in one, for a dialer needs the lock
				r.give(l)
				assert.Zero(t, r.Away())
				assert.False(t, r.CanBlock())
				r.giveTo(0, one)
				r.give(more)
			})
			require.ErrorIs(t, one.errOf(0), ErrNotSent)
			r.up()
			for i, w := range r.wires {
				w.Expect(string(l.Buf) + string(more.Buf))
				w.Send(echoes("a", "b", "c"))
				r.awaitDone(map[int][]*ledger{1: {l, more}}[i]...)
			}
			require.NoError(t, l.errOf(0))
			require.NoError(t, more.errOf(0))
			require.True(t, r.look(0).Resumed)
			r.works()
		}
		require.Equal(t, []bool{true, true, true}, downs)
	})
}

// TestIdleConnectionIsNotReplaced: where the first dial fails, or finds another server, or one that was a replica
// meanwhile, nothing of the queue was sent. The owner hears of the end of a connection before it is asked for the next one: it
// may keep a claim from one to the other.
func TestIdleConnectionIsNotReplaced(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		for _, found := range []string{"", "another", "promoted"} {
			other := found != ""
			var heard []string
			r := newUpFleet(t, portable, 1, func(c *Config) {
				c.Accept = func(int, Server) error { heard = append(heard, "accept"); return nil }
				c.OnUp = func(int) { heard = append(heard, "up") }
			})
			r.do(func() {
				r.cfg.OnDown = func(node int) {
					heard = append(heard, map[bool]string{true: "rests", false: "down"}[r.Node(node).Rests])
				}
			})
			p := r.peers[0]
			switch found {
			case "another":
				p.RunID = scripted.NewRunID()
			case "promoted":
				p.Answers = map[string]string{"INFO replication": scripted.InfoOf("role:master\r\nmaster_replid:i\r\nmaster_replid2:h\r\n")}
			}
			r.closeIdle(0)
			if !other {
				p.Stop()
			}
			l := r.send("a")
			r.awaitDone(l)
			require.ErrorIs(t, l.errOf(0), ErrNotSent)
			if !other {
				p.Start(t)
			}
			r.up()
			r.works()
			r.do(func() { require.Equal(t, []string{"accept", "up", "rests", "down", "accept", "up"}, heard) })
			require.False(t, r.look(0).Resumed)
		}
	})
}

// TestWhatAnIdleConnectionHasTaken may have reached the server: it fails, and only what was not written is kept.
func TestWhatAnIdleConnectionHasTaken(t *testing.T) {
	onBothPaths(t, 1, func(t *testing.T, r *testFleet) {
		r.clock.Advance(time.Second)
		l := r.send("a")
		r.wires[0].Expect(string(l.Buf))
		require.NoError(t, r.wires[0].Close())
		r.wires[0] = nil
		r.awaitDone(l)
		require.ErrorIs(t, l.errOf(0), ErrIdle)
		require.NotErrorIs(t, l.errOf(0), ErrNotSent)
		kept := r.send("b")
		r.up()
		r.answer(kept)
		r.awaitDone(kept)
		require.NoError(t, kept.errOf(0))

		l = r.send("busy", "not long before") // this one was not idle
		r.wires[0].Expect(string(l.Buf))
		r.wires[0].Send(echoes("busy"))
		r.until("the first reply", func() bool { return l.nodes[0].replies == 1 })
		r.clock.Advance(time.Second)
		require.NoError(t, r.wires[0].Close())
		r.wires[0] = nil
		r.awaitDone(l)
		require.NotErrorIs(t, l.errOf(0), ErrIdle)
		r.up()
	})
}

// TestARestHasAnEnd: a queue that waits longer than the stall bound fails, and the dialer goes on alone.
func TestARestHasAnEnd(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		p := scripted.New(t, func(p *scripted.Server) {
			p.Greeting = func(n int, honest string) scripted.Steps {
				if n == 1 {
					return scripted.Steps{scripted.Mute}
				}
				return scripted.Steps{honest}
			}
		})
		r := newTestFleet(t, portable, []*scripted.Server{p})
		r.up()
		r.closeIdle(0)
		l := r.send("a")
		testkit.Await(t, "the next dial", func() bool { return p.Dialled.Load() == 2 })
		r.clock.Advance(defaultStallTimeout + 1)
		r.do(r.Check)
		require.ErrorIs(t, l.errOf(0), ErrStalled)
		require.ErrorIs(t, l.errOf(0), ErrNotSent)
		r.do(func() { assert.EqualValues(t, 1, r.Away()) })
		p.Forget(0)
		r.up()
		r.works()
		require.EqualValues(t, 3, p.Dialled.Load(), "one dialer")
	})
}
