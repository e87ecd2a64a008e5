package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/script"
)

// lose is a connection that ends: the node owes nothing from here on.
func (p *puppet) lose(node int) {
	p.turn(func() {
		p.engine.NodeDown(node)
		p.down |= 1 << node
		for _, s := range p.sent {
			p.fail(s, node, errLost)
		}
	})
}

// revive is a new connection. It returns what was sent on it at once.
func (p *puppet) revive(node int) []*shot {
	before := len(p.sent)
	p.down &^= 1 << node
	p.turn(func() { p.engine.NodeUp(node) })
	return p.sent[before:]
}

// release is the single-key call for an op's key and token.
func releaseOf(op *outcome) string {
	return fmt.Sprintf("*5\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n1\r\n$%d\r\n%s\r\n$22\r\n%s\r\n",
		script.ReleaseSHA1, len(op.Key), op.Key, op.Token[:])
}

// TestUnansweredAcquireIsReleased: first thing on the next connection, whether
// the lock was won with the others' votes or not.
func TestUnansweredAcquireIsReleased(t *testing.T) {
	p := newPuppet(t, 3)
	op := p.submit(Acquire, "key")
	p.turn(func() { p.reply(p.sent[0], 0, ok); p.reply(p.sent[0], 1, ok) })
	require.NoError(t, op.Err)
	p.lose(2)
	p.idle()
	paid := p.revive(2)
	require.Len(t, paid, 1)
	require.Equal(t, releaseOf(op), paid[0].bytes)
	require.Equal(t, 1, p.engine.unsettled, "Close waits for it")
	p.turn(func() { p.reply(paid[0], 2, "-ERR whatever\r\n") })
	p.idle()
	p.lose(2)
	require.Empty(t, p.revive(2), "paid twice")
}

// TestReleaseOfANodeThatIsAway: it is made up for, also if it was down when the
// release came.
func TestReleaseOfANodeThatIsAway(t *testing.T) {
	p := newPuppet(t, 3)
	held := p.submit(Acquire, "key")
	p.turn(func() {
		for node := range 3 {
			p.reply(p.sent[0], node, ok)
		}
	})
	p.lose(2)
	p.sent = nil
	released := p.submit(Release, "key")
	extended := p.op(Extend, "other") // nothing is owed for these two
	require.NoError(t, p.engine.Submit(&extended.Op))
	late := p.op(Acquire, "late")
	require.NoError(t, p.engine.Submit(&late.Op))
	p.turn(func() { p.reply(p.sent[0], 0, one); p.reply(p.sent[0], 1, one) })
	require.NoError(t, released.Err)
	p.turn(func() { p.reply(p.sent[1], 0, one, ok); p.reply(p.sent[1], 1, one, ok) })
	require.NoError(t, late.Err)
	paid := p.revive(2)
	require.Len(t, paid, 1)
	require.Equal(t, releaseOf(held), paid[0].bytes)
	p.turn(func() { p.reply(paid[0], 2, one) })
	p.idle()
}

// TestDebtsEndWithTheLongestTTL: after that there is nothing to release, and a
// node that stays away is not kept account of.
func TestDebtsEndWithTheLongestTTL(t *testing.T) {
	p := newPuppet(t, 3)
	p.submit(Acquire, "key") // for 1 s
	p.lose(2)
	p.clock.Advance(1011 * time.Millisecond)
	require.NotZero(t, p.engine.debts[2].until)
	require.NotEmpty(t, p.engine.debts[2].younger)
	p.clock.Advance(2 * time.Millisecond)
	p.turn(func() { p.reply(p.sent[0], 0, ok); p.reply(p.sent[0], 1, ok) })
	p.submit(Release, "key")
	require.Empty(t, p.engine.debts[2].younger)
	require.Empty(t, p.revive(2))
}

// TestNothingIsOwedToANodeThatNeverWas: what was never sent an acquire holds no
// key.
func TestNothingIsOwedToANodeThatNeverWas(t *testing.T) {
	p := newPuppet(t, 3)
	p.down = 0b100
	p.submit(Acquire, "key")
	p.turn(func() { p.reply(p.sent[0], 0, ok); p.reply(p.sent[0], 1, ok) })
	p.submit(Release, "key")
	p.turn(func() { p.reply(p.sent[1], 0, one); p.reply(p.sent[1], 1, one) })
	require.Empty(t, p.revive(2))
	p.idle()
}

// TestUnpaidDebtsAreOwedAgain: a connection that dies at once paid nothing, or
// only the first part.
func TestUnpaidDebtsAreOwedAgain(t *testing.T) {
	for _, speaks := range []conn.Dialect{scripts, valkey, redis} {
		p := newMixed(t, speaks, speaks)
		p.submit(Acquire, "blocker")
		for i := range 3 {
			p.submit(Acquire, fmt.Sprintf("key-%d", i))
		}
		p.turn(func() { p.reply(p.sent[0], 0, ok); p.reply(p.sent[0], 1, ok) })
		p.turn(func() { p.reply(p.sent[1], 1, ok, ok, ok) })
		p.lose(0)
		p.sent = nil
		for range 2 {
			paid := p.revive(0)
			require.Len(t, paid, 1)
			for i := range 3 {
				require.Contains(t, paid[0].bytes, fmt.Sprintf("key-%d", i))
			}
			p.lose(0)
			p.sent = nil
		}
		if speaks == scripts {
			continue // one call, which is paid as a whole
		}
		paid := p.revive(0)
		require.Equal(t, 6, paid[0].batch.Replies, "three acquires, and the releases after them")
		p.turn(func() { p.reply(paid[0], 0, ":1\r\n", ":0\r\n", ":1\r\n", ":0\r\n", ":1\r\n") })
		p.lose(0)
		p.sent = nil
		paid = p.revive(0)
		require.Equal(t, 1, paid[0].batch.Replies)
		require.Contains(t, paid[0].bytes, "key-2")
	}
}

// TestDebtsAreBounded: the oldest are dropped, and what is left is whole.
func TestDebtsAreBounded(t *testing.T) {
	for _, speaks := range []conn.Dialect{scripts, valkey, redis} {
		p := newMixed(t, speaks)
		e := p.engine
		e.longest = time.Hour
		e.NodeDown(0)
		op := p.op(Acquire, "")
		w := newWire(nil)
		const n = 10_000
		for i := range n {
			op.Key = []byte(strings.Repeat("k", i%200) + fmt.Sprintf("-%d", i))
			w.Buf = w.Buf[:0]
			w.appendAcquire(&op.Op)
			e.owe(0, Acquire, w.Buf, false)
		}
		d := &e.debts[0]
		require.LessOrEqual(t, len(d.elder), debtBytes)
		require.LessOrEqual(t, len(d.younger), debtBytes)
		require.Greater(t, len(d.elder)+len(d.younger), debtBytes)
		paid := p.revive(0)
		var o operands
		newest := n - 1
		for i := len(paid[0].starts()) - 1; i >= 0; i-- {
			o.read(Release, []byte(paid[0].bytes[paid[0].starts()[i]:]))
			for j := len(o.keys) - 1; j >= 0; j-- {
				require.True(t, strings.HasSuffix(string(o.keys[j]), fmt.Sprintf("-%d", newest)))
				require.Equal(t, string(op.Token[:]), string(o.tokens[j]))
				newest--
			}
		}
		require.Less(t, newest, n-1000)
		require.Less(t, p.last().batch.Replies, conn.DefaultMaxInFlight)
	}
}

func (s *shot) starts() []int { return s.batch.Owner.(*payment).starts }

// TestOwingAllocatesNothing: a node that is down must not cost more than one
// that is up.
func TestOwingAllocatesNothing(t *testing.T) {
	p := newPuppet(t, 1)
	p.engine.longest = time.Hour
	p.engine.NodeDown(0)
	op := p.op(Release, "key")
	w := newWire(nil)
	w.batch = &batch{rounds: []round{{op: &op.Op}}}
	w.appendCall(Release, script.ReleaseSHA1, w.batch.rounds)
	for range 10_000 { // until both generations are there
		p.engine.owe(0, Release, w.Buf, true)
	}
	require.Zero(t, testing.AllocsPerRun(1000, func() { p.engine.owe(0, Release, w.Buf, true) }))
}
