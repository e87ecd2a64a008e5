package engine

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/test/testkit/manual"
)

// TestLateVotesDoNotReachTheNextUse: a batch that still knows an Op which was
// cancelled and is used again must not settle it.
func TestLateVotesDoNotReachTheNextUse(t *testing.T) {
	p := newScripted(t, 3)
	p.engine.rounds.window.size = 9 // open also when a batch is out
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

// TestASecondSubmit is refused while the first is under way, be it sent or not.
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
}

// hook is a clock that lets a test in between two steps of the driver.
type hook struct {
	*manual.Clock
	once sync.Once
	f    func()
}

func (h *hook) Now() clock.Instant {
	if h.f != nil {
		h.once.Do(h.f)
	}
	return h.Clock.Now()
}

// TestCancelWhileSending: a Cancel that comes while the driver encodes waits,
// and then takes the operation back and releases.
func TestCancelWhileSending(t *testing.T) {
	for range 100 {
		p := newScripted(t, 3)
		h := &hook{Clock: p.clock}
		p.engine.nodes.clock = h
		op := p.op(Acquire, "key")
		op.Kind, op.TTL = Acquire, time.Second
		require.NoError(t, p.engine.enqueue(&op.Op))
		result := make(chan bool)
		var phase uint64
		h.f = func() { // flush reads the clock after it has encoded
			phase = op.state.Load() & phaseMask
			go func() { result <- p.engine.Cancel(&op.Op) }()
			runtime.Gosched()
		}
		p.engine.drive(nil)
		require.True(t, <-result)
		require.EqualValues(t, sending, phase, "the test is not where it wants to be")
		p.all(p.sent[0], ok)
		require.Zero(t, op.times)
		require.Len(t, p.sent, 2)
		require.True(t, strings.Contains(p.sent[1].bytes, "EVALSHA"))
	}
}
