package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// TestLateVotesDoNotReachTheNextUse: a batch that still knows an Op which was
// cancelled and is used again must not settle it.
func TestLateVotesDoNotReachTheNextUse(t *testing.T) {
	p := newScripted(t, 3)
	p.engine.ledger.window.size = 9 // open also when a batch is out
	op := p.submit(Acquire, "first")
	require.True(t, p.engine.Cancel(&op.Op))
	op.Kind, op.Key = Extend, []byte("second")
	require.NoError(t, p.engine.Submit(&op.Op))
	require.EqualValues(t, inFlight, op.state.Load()&phaseMask)
	p.all(p.sent[0], ok)
	require.Zero(t, op.times, "settled by the votes on its first use")
	require.Len(t, p.sent, 3)
	require.Contains(t, p.sent[1].bytes, "first", "nothing cleans up")
	p.all(p.sent[1], one)
	p.all(p.sent[2], zero)
	require.Equal(t, 1, op.times)
	require.Equal(t, ErrNotHeld, op.Err)
	p.idle()
}

// TestASecondSubmit is refused while the first is under way, be it sent or not. An operation that
// is refused otherwise says so, and has no validity.
func TestASecondSubmit(t *testing.T) {
	p := newScripted(t, 1)
	ops := []*countedOp{p.submit(Release, "sent"), p.submit(Release, "waits")}
	for i, op := range ops {
		require.Equal(t, ErrUnderWay, p.engine.Submit(&op.Op))
		require.EqualValues(t, 1, p.engine.queue.size.Load(), "operation %d", i)
	}
	for i, op := range ops {
		p.turn(func() { p.reply(p.sent[i], 0, one) })
		require.Equal(t, 1, op.times)
		require.NoError(t, op.Err)
	}
	p.idle()
	require.NoError(t, p.engine.Submit(&ops[0].Op))

	refused := p.op(Acquire, "")
	require.Error(t, p.engine.Submit(&refused.Op))
	require.Error(t, refused.Err)
	require.Equal(t, clock.Never, refused.Until)
}
