package engine

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/wire/command"
)

// waitingOps are the operations that would go into one batch, by class.
func waitingOps(released, acquired int) (ls [classes]list) {
	for range released {
		ls[releases].push(&Op{Kind: Release})
	}
	for range acquired {
		ls[acquires].push(&Op{Kind: Acquire})
	}
	return ls
}

// TestNoOperationIsDeferredTwice: an operation that was deferred is in the next batch.
func TestNoOperationIsDeferredTwice(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	a := deferrer{deferred: classes, next: 1}
	before, twice := classes, 0
	for range 5_000 {
		ls := waitingOps(rng.IntN(3), rng.IntN(3))
		held := a.minority(&ls)
		if held.n == 0 {
			before = classes
			continue
		}
		class := int(command.Rank[held.first.Kind])
		require.NotEqual(t, before, class)
		if before != classes {
			twice++
		}
		before = class
	}
	require.NotZero(t, twice, "the others may be held from that one")
}

// TestAligningWaitsWhereItIsInVain: where every batch has both, one in
// maxDeferPause is split in the end; and as soon as it helps it is done again.
func TestAligningWaitsWhereItIsInVain(t *testing.T) {
	a := deferrer{deferred: classes, next: 1}
	split := func(batches int) (n int) {
		for range batches {
			ls := waitingOps(3, 4)
			if a.minority(&ls).n > 0 {
				n++
			}
		}
		return n
	}
	require.Less(t, split(10_000), 2*10_000/maxDeferPause)
	require.NotZero(t, split(2*maxDeferPause))
	for a.deferred == classes {
		split(1)
	}
	ls := waitingOps(0, 7)
	a.minority(&ls)
	require.NotZero(t, split(1))
}

// TestCallersComeIntoStep: of two that acquire and two that release, each of which
// does the other as soon as it is served, all do the same after a few batches; and
// none waits for ever.
func TestCallersComeIntoStep(t *testing.T) {
	for _, c := range []struct {
		name  string
		speak conn.Form
		same  bool
		apart bool
	}{
		{"scripts", scripts, false, true}, {"native", valkey, false, false}, {"one key", scripts, true, false},
	} {
		p := newMixed(t, c.speak)
		keys := []string{"a", "b", "c", "d"}
		blocker := p.submit(Acquire, "blocker")
		for i, key := range keys {
			if c.same {
				key = "same"
			}
			op := p.op([]Kind{Acquire, Release}[i%2], key)
			op.then = func() {
				op.Kind, op.TTL = Acquire+Release-op.Kind, time.Second
				require.NoError(t, p.engine.Submit(&op.Op))
			}
			require.NoError(t, p.engine.Submit(&op.Op))
		}
		p.turn(func() { p.reply(p.sent[0], 0, ok) })
		require.NoError(t, blocker.Err)
		pure := 0
		for range 40 {
			b := p.last().batch.Owner.(*wire).batch
			counts := map[Kind]int{}
			for _, g := range b.runs {
				counts[g.kind] += g.count
			}
			pure++
			if counts[Acquire] > 0 && counts[Release] > 0 {
				pure = 0
			}
			p.turn(func() {
				s := p.last()
				for s.next[0] >= 0 {
					switch sp := &b.first.spans[s.next[0]]; {
					case sp.kind == Acquire:
						p.reply(s, 0, ok)
					case c.speak == valkey:
						p.reply(s, 0, ":1\r\n")
					default:
						p.reply(s, 0, "*"+string(rune('0'+sp.count))+"\r\n"+ones[:4*sp.count])
					}
				}
			})
		}
		if c.apart {
			require.Greater(t, pure, 30, c.name)
		} else {
			require.Zero(t, pure, c.name)
		}
	}
}

const ones = ":1\r\n:1\r\n:1\r\n:1\r\n"

// TestCancelWhileItIsDeferred: the driver has taken it, and puts it back.
func TestCancelWhileItIsDeferred(t *testing.T) {
	p := newScripted(t, 1)
	e := p.engine
	require.True(t, e.lock.TryLock()) // no other goroutine may send it
	defer e.lock.Unlock()
	for range 2000 {
		op := p.submit(Acquire, "key")
		held := e.queue.take(1, 1, true)
		begun, cancelled := make(chan struct{}), make(chan bool)
		go func() {
			close(begun)
			cancelled <- e.Cancel(&op.Op)
		}()
		<-begun
		runtime.Gosched() // where it most likely finds that it was taken
		e.queue.putBack(held)
		require.True(t, <-cancelled)
		require.Zero(t, e.queue.size.Load())
	}
}
