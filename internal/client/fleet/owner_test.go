package fleet

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// An Owner that sends from within Reply, to the node that is being read and to
// another, as the retry of a lost script does.
func TestSendToFromWithinReply(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		for _, to := range []int{0, 1} {
			r := newUpFleet(t, portable, 2)
			const rounds = 3 * minRing // so that the ring grows under the decoder
			var more []*ledger
			first := newLedger(t, tagsOf(rounds))
			first.onReply = func(node, i int) error {
				if node == 0 {
					l := newLedger(t, []string{fmt.Sprint("more-", i)})
					more = append(more, l)
					r.giveTo(to, l)
				}
				return nil
			}
			r.post(first)
			r.answer(first)
			r.awaitDone(first)
			require.Len(t, more, rounds)
			for _, l := range more {
				r.answer(l, to)
			}
			r.awaitDone(more...)
			for _, l := range more {
				assert.NoError(t, l.errOf(to))
			}
			r.works()
		}
	})
}

// The node that Reply writes to turns out to be dead, or is the one that the
// same Reply complains about.
func TestSendToFromWithinReplyToADeadNode(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		for _, to := range []int{0, 1} {
			r := newUpFleet(t, portable, 2)
			late := newLedger(t, []string{"late"})
			l := newLedger(t, []string{"one", "two", "three"})
			l.onReply = func(node, i int) error {
				if node != 0 || i != 1 {
					return nil
				}
				if to == 1 {
					r.wires[1].Cut() // and we have not heard of it yet
				}
				r.giveTo(to, late)
				return errMisfit
			}
			r.post(l)
			r.wires[0].Expect(string(l.Buf))
			r.wires[1].Expect(string(l.Buf))
			r.wires[0].Send(echoes(l.tags...))
			if to == 0 {
				r.wires[1].Send(echoes(l.tags...))
			}
			r.awaitDone(l, late)
			assert.Equal(t, 2, l.nodes[0].replies)
			assert.ErrorIs(t, l.errOf(0), errMisfit)
			assert.NotErrorIs(t, l.errOf(0), conn.ErrNotSent)
			assert.Error(t, late.errOf(to))
		}
	})
}

// An Owner that answers each failure with another batch, to the same node and
// to others, ends all the same: what is down fails at once.
func TestSendToFromWithinFail(t *testing.T) {
	onBothPaths(t, 3, func(t *testing.T, r *testFleet) {
		var more []*ledger
		sent := make([]*ledger, 4)
		for i := range sent {
			sent[i] = newLedger(t, tagsOf(2))
			sent[i].onFail = func(node, _ int, err error) {
				for to := range r.Len() {
					l := newLedger(t, []string{"again"})
					more = append(more, l)
					r.giveTo(to, l)
					if to == node {
						assert.ErrorIs(t, l.errOf(to), conn.ErrNotSent)
						assert.Equal(t, 1, l.doneCalls)
					}
				}
			}
			r.post(sent[i])
		}
		r.wires[1].Cut()
		r.lose(1)
		require.Len(t, more, 3*len(sent))
		r.up()
		for _, i := range []int{0, 2} {
			for _, l := range append(sent, more[i]) {
				r.wires[i].Expect(string(l.Buf))
			}
		}
		r.do(r.Close)
		for _, l := range append(sent, more...) {
			assert.Equal(t, 1, l.doneCalls)
		}
	})
}

func TestAfterClose(t *testing.T) {
	onBothPaths(t, 2, func(t *testing.T, r *testFleet) {
		before := r.send("before")
		r.do(r.Close)
		assert.Equal(t, 1, before.doneCalls)
		assert.ErrorIs(t, before.errOf(0), conn.ErrClosed)
		assert.NotErrorIs(t, before.errOf(0), conn.ErrNotSent)
		r.Drain()
		after, one := r.send("after"), r.sendTo(1, "after")
		assert.Equal(t, 1, after.doneCalls)
		assert.Equal(t, 1, one.doneCalls)
		for _, err := range []error{after.errOf(0), after.errOf(1), one.errOf(1)} {
			assert.ErrorIs(t, err, conn.ErrClosed)
			assert.ErrorIs(t, err, conn.ErrNotSent)
		}
		r.do(func() {
			r.Sweep(0)
			r.Sweep(1)
			r.Check()
			r.Arm()
			r.Close()
			for i := range r.Len() {
				assert.False(t, r.Up(i))
				assert.ErrorIs(t, r.Fault(i), conn.ErrClosed)
			}
		})
		for range 3 {
			testkit.Within(t, testkit.Patience, "Wait", func() { assert.False(t, r.Wait()) })
		}
		r.Drain()
		r.AwaitFirst(nil, nil)
	})
}

// TestAMisfitEndsTheConnection: after a reply that its Owner refuses there is no other.
func TestAMisfitEndsTheConnection(t *testing.T) {
	onBothPaths(t, 1, func(t *testing.T, r *testFleet) {
		l := newLedger(t, []string{"a", "b"})
		l.onReply = func(int, int) error { return errMisfit }
		r.post(l)
		r.answer(l)
		r.awaitDone(l)
		require.ErrorIs(t, l.errOf(0), errMisfit)
		require.Equal(t, 1, l.nodes[0].replies)
	})
}
