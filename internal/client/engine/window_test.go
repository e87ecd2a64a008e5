package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWindowOfADecidedBatch: once every round of a batch has its verdict,
// the next batch may go, though nodes still owe replies of the first.
func TestWindowOfADecidedBatch(t *testing.T) {
	enqueue := func(p *scriptedFleet, key string, ttl time.Duration) *countedOp {
		op := p.op(Acquire, key)
		op.TTL = ttl
		require.NoError(t, p.engine.enqueue(&op.Op))
		return op
	}
	for name, run := range map[string]func(t *testing.T, p *scriptedFleet){
		"four nodes": func(t *testing.T, p *scriptedFleet) {
			lost, won := enqueue(p, "lost", time.Second), enqueue(p, "won", time.Second)
			late := enqueue(p, "late", time.Second)
			p.turn(func() {})
			require.Len(t, p.sent, 1)
			require.Equal(t, 3, p.sent[0].batch.Replies)
			// The rounds are decided in the middle of node 2's replies: by two
			// failures the first and the last, by the third grant the other.
			for node := range 2 {
				p.turn(func() { p.reply(p.sent[0], node, noKey, ok, noKey) })
			}
			p.turn(func() { p.reply(p.sent[0], 2, null, ok) })
			require.Equal(t, []int{1, 1, 1}, []int{lost.times, won.times, late.times})
		},
		"timeouts that differ": func(t *testing.T, p *scriptedFleet) {
			slow, quick := enqueue(p, "slow", 800*time.Millisecond), enqueue(p, "quick", 100*time.Millisecond)
			p.turn(func() {})
			require.Len(t, p.sent, 1)
			require.Equal(t, 2, p.sent[0].batch.Replies)
			p.tick(10 * time.Millisecond)
			require.Equal(t, 1, quick.times)
			for node := range 3 {
				p.turn(func() { p.reply(p.sent[0], node, ok) })
			}
			require.Equal(t, 1, slow.times)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newScripted(t, 4)
			p.engine.timeout = 0 // it follows from the TTL
			run(t, p)
			next := p.op(Release, "next")
			require.NoError(t, p.engine.Submit(&next.Op))
			cleanups := len(p.sent) > 1 // they may go first, and shut the window again
			require.True(t, cleanups || strings.Contains(p.last().bytes, "next"), "the window is shut")
		})
	}
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
