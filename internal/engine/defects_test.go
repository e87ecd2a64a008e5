package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/clock"
)

// wasSent says whether a key is in anything that was sent.
func (p *scriptedFleet) wasSent(key string) bool {
	for _, s := range p.sent {
		if strings.Contains(s.bytes, key) {
			return true
		}
	}
	return false
}

// TestDefectWindowOfADecidedBatch: once every round of a batch has its verdict,
// the next batch may go, though nodes still owe replies of the first.
func TestDefectWindowOfADecidedBatch(t *testing.T) {
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
			// denials the first and the last, by the third grant the other.
			for node := range 2 {
				p.turn(func() { p.reply(p.sent[0], node, null, ok, null) })
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
			require.True(t, cleanups || p.wasSent("next"), "the window is shut")
		})
	}
}

// TestRefusedExtendsAreLinear: native extends that a node refuses are sent again as
// script calls, in a time that does not grow with the square of their number.
func TestRefusedExtendsAreLinear(t *testing.T) {
	cost := func(n int) (least time.Duration) {
		least = time.Hour
		for range 3 {
			p := newScripted(t, 1)
			p.engine.queue.limit = n
			p.speaks = []conn.Form{valkey}
			for i := range n {
				o := p.op(Extend, fmt.Sprint(i))
				copy(o.Token[:], fmt.Sprintf("%08d", 2*i)) // of a lock of its own: see lockOf
				require.NoError(t, p.engine.enqueue(&o.Op))
			}
			p.engine.drive(nil)
			require.Len(t, p.sent, 1)
			refusals := slices.Repeat([]string{"-OOM command not allowed\r\n"}, n)
			began := time.Now()
			require.NoError(t, p.reply(p.sent[0], 0, refusals...))
			least = min(least, time.Since(began))
			require.Len(t, p.sent, 1+n)
		}
		return least
	}
	cost(64)
	few, many := cost(128), cost(1024)
	t.Logf("128 take %v, 1,024 %v", few, many)
	require.Less(t, many, 24*few+10*time.Millisecond) // the square is 64 times as much
}

// TestDialersBeforeStart: a dialer that gives the driver lock up before Start,
// and has news, does not look at what Start sets. Only -race sees it.
func TestDialersBeforeStart(t *testing.T) {
	for range 50 {
		f := newMemory(1, false)
		e := New(Config{Clock: clock.System(), MaxWaiting: 4})
		f.engine = e
		lock := e.DriverLock()
		told, left := make(chan struct{}), make(chan struct{})
		lock.Lock()
		go func() { // as conn.Fleet.dial
			lock.Lock()
			e.Tell(func() { close(told) })
			lock.Unlock()
			close(left)
		}()
		lock.Unlock()
		e.Start(f)
		<-left
		<-told
		e.Close(0)
		close(f.ended)
	}
}
