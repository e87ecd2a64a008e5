package engine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/script"
	"github.com/redlock-go/redlock/internal/token"
)

// anywhere is the Op.Absent of one release, of which nothing is known.
var anywhere = []uint64{0}

// lose is a connection that ends: the node owes nothing from here on.
func (p *puppet) lose(node int) {
	p.turn(func() {
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

// callOf is the script call that releases the ops' keys.
func callOf(ops ...*outcome) string {
	call := fmt.Sprintf("*%d\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n%d\r\n", 3+2*len(ops), script.ReleaseSHA1, len(ops))
	for _, op := range ops {
		call += fmt.Sprintf("$%d\r\n%s\r\n", len(op.Key), op.Key)
	}
	for _, op := range ops {
		call += fmt.Sprintf("$22\r\n%s\r\n", op.Token[:])
	}
	return call
}

// TestReleaseOfANodeThatIsAway is made up for, first thing on the next connection:
// of a lock that was held, of one whose acquire the node never answered, and of an
// acquire that failed.
func TestReleaseOfANodeThatIsAway(t *testing.T) {
	p := newPuppet(t, 3)
	held := p.submit(Acquire, "key")
	p.turn(func() {
		for node := range 3 {
			p.reply(p.sent[0], node, ok)
		}
	})
	won := p.submit(Acquire, "unanswered")
	p.turn(func() { p.reply(p.sent[1], 0, ok); p.reply(p.sent[1], 1, ok) })
	lost := p.submit(Acquire, "taken")
	p.turn(func() { p.reply(p.sent[2], 0, null) })
	p.lose(2)
	p.turn(func() { p.reply(p.sent[2], 1, null) })
	require.NoError(t, won.Err)
	require.Equal(t, ErrTaken, lost.Err)
	p.turn(func() { p.reply(p.last(), 0, zero); p.reply(p.last(), 1, zero) })
	for _, op := range []*outcome{held, won} {
		released := p.submit(Release, string(op.Key))
		p.turn(func() { p.reply(p.last(), 0, one); p.reply(p.last(), 1, one) })
		require.NoError(t, released.Err)
	}
	p.idle()
	paid := p.revive(2)
	require.Len(t, paid, 1)
	require.Equal(t, callOf(lost, held, won), paid[0].bytes)
	require.Equal(t, 1, p.engine.unsettled, "Close waits for it")
	p.turn(func() { p.reply(paid[0], 2, "-ERR whatever\r\n") })
	p.idle()
	p.lose(2)
	require.Empty(t, p.revive(2), "paid twice")
}

// TestNothingElseIsOwed: a lock that is held stays where it was set, and an
// extend that failed has failed.
func TestNothingElseIsOwed(t *testing.T) {
	p := newPuppet(t, 3)
	for _, kind := range []Kind{Acquire, Extend} {
		op := p.submit(kind, "key")
		yes := map[Kind]string{Acquire: ok, Extend: one}[kind]
		p.turn(func() { p.reply(p.last(), 0, yes); p.reply(p.last(), 1, yes) })
		require.NoError(t, op.Err)
		p.lose(2)
		require.Empty(t, p.revive(2), kind)
	}
	p.idle()
}

// TestNothingIsOwedToANodeThatNeverWas: it has no keys.
func TestNothingIsOwedToANodeThatNeverWas(t *testing.T) {
	p := newPuppet(t, 3)
	p.engine.debts[2].met = false
	p.down = 0b100
	p.submit(Release, "key")
	p.turn(func() { p.reply(p.sent[0], 0, one); p.reply(p.sent[0], 1, one) })
	require.Empty(t, p.revive(2))
	p.lose(2)
	p.submit(Release, "key")
	require.Len(t, p.revive(2), 1)
}

// TestNothingIsOwedWithoutAKey: to a node that denied the acquire, or was never
// sent it, be the release the lock's own or that of an acquire that failed.
func TestNothingIsOwedWithoutAKey(t *testing.T) {
	p := newPuppet(t, 5)
	release := func(of *outcome) {
		op := p.op(Release, string(of.Key))
		op.Token, op.Absent = of.Token, of.Absent
		require.NoError(t, p.engine.Submit(&op.Op))
	}
	p.down = 0b10000
	for _, votes := range [][]string{
		{ok, ok, ok, null},   // won
		{ok, null, null, ok}, // lost
		{null, null, null},   // lost, and the fourth node has not said anything
	} {
		p.sent = nil
		acquired := p.submit(Acquire, "key")
		p.turn(func() {
			for node, vote := range votes {
				p.reply(p.sent[0], node, vote)
			}
		})
		for node := range 4 {
			p.lose(node)
		}
		if acquired.Err == nil {
			release(acquired)
		}
		p.idle()
		for node := range 5 {
			paid := p.revive(node)
			if node < len(votes) && votes[node] == null || node == 4 {
				require.Empty(t, paid, "%d %v", node, votes)
				continue
			}
			require.Len(t, paid, 1, "%d %v", node, votes)
			require.Equal(t, callOf(acquired), paid[0].bytes)
			p.turn(func() { p.reply(paid[0], node, one) })
		}
		p.down = 0b10000
	}
}

// TestDebtsOutliveAStorm: while a quorum is away, callers that try again and again
// clean up after attempts that most nodes never heard of. What is held is owed all
// the same when it is released.
func TestDebtsOutliveAStorm(t *testing.T) {
	p := newPuppet(t, 3)
	held := p.submit(Acquire, "held")
	p.turn(func() {
		for node := range 3 {
			p.reply(p.sent[0], node, ok)
		}
	})
	p.lose(1)
	p.lose(2)
	for range 50_000 {
		p.sent = nil
		failed := p.submit(Acquire, "a key of which there is a lot to remember")
		require.Equal(t, ErrNoQuorum, failed.Err)
		require.Len(t, p.sent, 2, "and its cleanup")
		p.turn(func() { p.reply(p.sent[0], 0, ok); p.reply(p.sent[1], 0, one) })
	}
	p.idle()
	p.submit(Release, "held")
	paid := p.revive(1)
	require.Len(t, paid, 1)
	require.Equal(t, callOf(held), paid[0].bytes)
}

// TestCancelledAcquireIsNotOwed to a node that was away when it was sent.
func TestCancelledAcquireIsNotOwed(t *testing.T) {
	p := newPuppet(t, 3)
	p.down = 0b100
	op := p.submit(Acquire, "key")
	require.True(t, p.engine.Cancel(&op.Op))
	p.turn(func() { p.reply(p.sent[0], 0, ok); p.reply(p.sent[0], 1, ok) })
	p.lose(1)
	require.Empty(t, p.revive(2))
	paid := p.revive(1)
	require.Len(t, paid, 1)
	require.Equal(t, callOf(op), paid[0].bytes)
}

// TestReleasedAgainAndAgainIsOwedOnce: which is what callers do while a quorum is
// away. It leaves room for what is released once.
func TestReleasedAgainAndAgainIsOwedOnce(t *testing.T) {
	p := newPuppet(t, 3)
	again, once := p.op(Release, "again and again"), p.op(Release, "once")
	for op, times := range map[*outcome]int{again: 200_000, once: 1} {
		w := newWire(nil)
		w.Dialect = valkey
		w.appendRelease(&op.Op)
		for range times {
			p.engine.owe(1, Release, w.Buf, anywhere)
			require.LessOrEqual(t, len(p.engine.debts[1].entries), debtBytes)
		}
	}
	require.False(t, p.engine.debts[1].full)
	p.engine.debts[1].compact()
	paid := p.revive(1)
	require.Len(t, paid, 1)
	require.Contains(t, []string{callOf(again, once), callOf(once, again)}, paid[0].bytes)
}

// TestCallsThatPayAreBounded: a server answers nothing before it has read all of one,
// and is taken for dead if that takes long.
func TestCallsThatPayAreBounded(t *testing.T) {
	p := newPuppet(t, 1)
	op := p.op(Release, "")
	w := newWire(nil)
	w.Dialect = valkey
	const n = 200
	for i := range n {
		op.Key = append(op.Key[:0], make([]byte, MaxKey)...)
		op.Key[0] = byte(i)
		w.Buf = w.Buf[:0]
		w.appendRelease(&op.Op)
		p.engine.owe(0, Release, w.Buf, anywhere)
	}
	paid := p.revive(0)
	starts := append(paid[0].batch.Owner.(*payment).starts, len(paid[0].bytes))
	require.Greater(t, len(starts), n*MaxKey/(callBytes+2*MaxKey))
	for i, from := range starts[:len(starts)-1] {
		require.Less(t, starts[i+1]-from, callBytes+2*MaxKey)
	}
}

// TestPaymentThatFailsAtOnce is owed still.
func TestPaymentThatFailsAtOnce(t *testing.T) {
	p := newPuppet(t, 1)
	p.submit(Release, "key")
	p.lose(0)
	p.turn(func() { p.engine.NodeUp(0) }) // and down again
	p.idle()
	require.Len(t, p.revive(0), 1)
}

// TestPaymentMisfits: nobody waits for the answers, but those behind them would
// be taken for each other's.
func TestPaymentMisfits(t *testing.T) {
	for _, c := range []struct {
		speaks conn.Dialect
		reply  string
		want   error
	}{
		{scripts, one, nil}, {scripts, zero, nil}, {scripts, noSuch, nil},
		{scripts, ":1\r\n", errMisfit}, {scripts, ok, errMisfit},
		{valkey, ":1\r\n", nil}, {redis, ":0\r\n", nil}, {redis, "-ERR unknown command\r\n", nil},
		{valkey, ok, errMisfit}, {valkey, null, errMisfit}, {redis, one, errMisfit},
		{redis, "-READONLY x\r\n", conn.ErrNotMaster},
	} {
		p := newMixed(t, c.speaks)
		p.submit(Release, "key")
		p.lose(0)
		paid := p.revive(0)
		p.turn(func() { require.ErrorIs(t, p.reply(paid[0], 0, c.reply), c.want, "%v %q", c.speaks, c.reply) })
	}
}

// TestUnpaidDebtsAreOwedAgain: a connection that dies at once paid nothing, or
// only the first part.
func TestUnpaidDebtsAreOwedAgain(t *testing.T) {
	for _, speaks := range []conn.Dialect{scripts, valkey, redis} {
		p := newMixed(t, speaks, speaks)
		p.submit(Acquire, "blocker")
		for i := range 3 {
			p.submit(Release, fmt.Sprintf("key-%d", i))
		}
		p.turn(func() { p.reply(p.sent[0], 0, ok); p.reply(p.sent[0], 1, ok) })
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
		require.Equal(t, 3, paid[0].batch.Replies)
		p.turn(func() { p.reply(paid[0], 0, ":1\r\n", ":0\r\n") })
		p.lose(0)
		p.sent = nil
		paid = p.revive(0)
		require.Equal(t, 1, paid[0].batch.Replies)
		require.Contains(t, paid[0].bytes, "key-2")
	}
}

// TestDebtsAreBounded: the first are kept, whole, and more cost nothing.
func TestDebtsAreBounded(t *testing.T) {
	for _, speaks := range []conn.Dialect{scripts, valkey, redis} {
		p := newMixed(t, speaks)
		e := p.engine
		op := p.op(Release, "")
		w := newWire(nil)
		w.Dialect = valkey
		const n = 50_000
		for i := range n {
			op.Key = fmt.Appendf(nil, "%d", i)
			w.Buf = w.Buf[:0]
			w.appendRelease(&op.Op)
			e.owe(0, Release, w.Buf, anywhere)
		}
		require.Zero(t, testing.AllocsPerRun(100, func() { e.owe(0, Release, w.Buf, anywhere) }))
		require.InDelta(t, debtBytes, len(e.debts[0].entries), 30)
		paid := p.revive(0)
		require.LessOrEqual(t, paid[0].batch.Replies, debtBytes/(2+1+token.Size))
		var o operands
		next := 0
		for _, at := range paid[0].batch.Owner.(*payment).starts {
			o.read(Release, []byte(paid[0].bytes[at:]))
			for j := range o.keys {
				require.Equal(t, fmt.Sprint(next), string(o.keys[j]))
				require.Equal(t, string(op.Token[:]), string(o.tokens[j]))
				next++
			}
		}
		require.InDelta(t, debtBytes/(2+5+token.Size), next, 1000)
		p.lose(0)
		require.Len(t, p.revive(0), 1, "owed again")
	}
}

// TestOwingNothingAllocatesNothing: what a node misses while it is away.
func TestOwingNothingAllocatesNothing(t *testing.T) {
	p := newPuppet(t, 1)
	op := p.op(Release, "key")
	w := newWire(nil)
	w.batch = &batch{rounds: []round{{op: &op.Op}}}
	w.appendCall(Release, script.ReleaseSHA1, w.batch.rounds)
	absent := []uint64{1}
	require.Zero(t, testing.AllocsPerRun(1000, func() { p.engine.owe(0, Release, w.Buf, absent) }))
	require.Empty(t, p.revive(0))
}
