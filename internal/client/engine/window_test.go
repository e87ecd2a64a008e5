package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWindowOfADecidedBatch: once every round of a batch has its verdict, the next batch may go, though nodes
// still owe replies of the first.
func TestWindowOfADecidedBatch(t *testing.T) {
	p := newScripted(t, 4)
	ops := p.batch(Acquire, "lost", "won", "late")
	require.Equal(t, 3, p.last().batch.Replies)
	// The rounds are decided in the middle of node 2's replies: by two failures the first and the last, by the
	// third grant the other.
	p.turn(func() { p.reply(p.sent[0], 0, noKey, ok, noKey) })
	p.turn(func() { p.reply(p.sent[0], 1, noKey, ok, noKey) })
	p.turn(func() { p.reply(p.sent[0], 2, null, ok) })
	for _, op := range ops {
		require.Equal(t, 1, op.times)
	}
	p.submit(Release, "next")
	require.Greater(t, len(p.sent), 1, "the window is shut") // cleanups may go first, and shut it again
}

// TestPatience: of a burst, the last operation has as long as it has waited, up to a bound. What this
// process stands still, nodes are not silent.
func TestPatience(t *testing.T) {
	for waited, patience := range map[time.Duration]time.Duration{
		time.Millisecond:       20 * time.Millisecond,
		100 * time.Millisecond: 100 * time.Millisecond,
		time.Second:            mostPatience * 20 * time.Millisecond,
	} {
		p := newScripted(t, 1)
		p.submit(Release, "blocker")
		op := p.submit(Acquire, "key")
		p.clock.Advance(waited)
		p.turn(func() { p.reply(p.sent[0], 0, one) })
		require.Len(t, p.sent, 2)
		p.tick(patience - 1)
		p.turn(func() {
			p.arrived = func() { p.clock.Advance(1) }
			p.engine.tick()
		})
		require.Zero(t, op.times)
		p.tick(0)
		require.ErrorIs(t, op.Err, ErrNoQuorum)
	}
}
