package engine

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/conn"
)

// TestCloseFailsWhatIsLeft: what waits and what is out ends with ErrClosed, and
// so does an operation that a callback tries to submit.
func TestCloseFailsWhatIsLeft(t *testing.T) {
	p := newScripted(t, 3)
	out, waits := p.submit(Acquire, "out"), p.submit(Acquire, "waits")
	again := p.op(Acquire, "again")
	var refused error
	out.then = func() { refused = p.engine.Submit(&again.Op) }
	p.engine.Close(0)
	require.Equal(t, []int{1, 1, 0}, []int{out.times, waits.times, again.times})
	require.Equal(t, []error{ErrClosed, ErrClosed, ErrClosed}, []error{out.Err, waits.Err, refused})
	p.idle()
	p.engine.Abandon(&out.Op) // as a caller does that comes late
	p.idle()
}

// TestCloseWaitsForCleanups: the release of an acquire that was given up is sent
// and answered before the nodes are left.
func TestCloseWaitsForCleanups(t *testing.T) {
	e := newServed(t, 3, false)
	e.hang()
	op := make(chanOp)
	call := op.acquire("key")
	require.NoError(t, e.Submit(call))
	require.True(t, e.Cancel(call))
	closed := make(chan struct{})
	go func() {
		e.Close(time.Hour)
		close(closed)
	}()
	select {
	case <-closed: // a Close that does not wait is seen here, or not at all
		require.Fail(t, "it does not wait")
	case <-time.After(20 * time.Millisecond):
	}
	e.heal(t)
	<-closed
	require.Zero(t, e.keys(), "a key is left")
	for _, s := range e.servers {
		require.EqualValues(t, 1, s.Count("SET"))
	}
}

// TestCloseIsBounded: nodes that never answer do not hold it up for longer.
func TestCloseIsBounded(t *testing.T) {
	e := newServed(t, 3, true)
	e.hang()
	done := make(chanOp, 1)
	op := done.acquire("key")
	op.Timeout = time.Hour
	e.timeout = time.Hour
	require.NoError(t, e.Submit(op))
	e.Close(time.Millisecond)
	require.Equal(t, ErrClosed, (<-done).Err)
	require.ErrorIs(t, op.Failures[0].Err, conn.ErrClosed)
}

// TestTheLastLookOfCloseLeavesNothing: an operation that came while Close was
// looking is sent, not left to run into the bound.
func TestTheLastLookOfCloseLeavesNothing(t *testing.T) {
	p := newScripted(t, 1)
	op := p.op(Release, "key")
	require.NoError(t, p.engine.enqueue(&op.Op)) // its submitter did not get the role
	require.False(t, p.engine.isQuiet())
	require.Len(t, p.sent, 1)
	require.Zero(t, p.engine.queue.size.Load())
}

// slowEnd is a Fleet with goroutines that take a while to notice that it was closed.
type slowEnd struct {
	*scriptedFleet
	closed chan struct{}
	ended  atomic.Int64
}

func (f *slowEnd) Close() { f.scriptedFleet.Close(); close(f.closed) }
func (f *slowEnd) Wake()  {}

func (f *slowEnd) Wait() bool {
	<-f.closed
	time.Sleep(50 * time.Millisecond) // the end is slow
	f.ended.Add(1)
	return false
}

func (f *slowEnd) Drain() { f.ended.Add(1) }

// TestCloseWaitsForGoroutines: after it none of the engine's or its fleet's runs, at
// once, not soon.
func TestCloseWaitsForGoroutines(t *testing.T) {
	f := &slowEnd{scriptedFleet: newScripted(t, 1), closed: make(chan struct{})}
	e := New(Config{Clock: f.clock, MaxWaiting: 4})
	f.engine = e
	e.Start(f)
	e.Close(0)
	require.EqualValues(t, 2, f.ended.Load())
}
