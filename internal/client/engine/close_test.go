package engine

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
	e.Close(after(0))
	require.EqualValues(t, 2, f.ended.Load())
}
