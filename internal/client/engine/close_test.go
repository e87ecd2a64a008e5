package engine

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTheLastLookOfCloseLeavesNothing: an operation that came while Close was
// looking is sent, not left to run into the bound.
func TestTheLastLookOfCloseLeavesNothing(t *testing.T) {
	p := newScripted(t, 1)
	p.queue(Release, "key") // its submitter did not get the role
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
	e.Close(nil)
	require.EqualValues(t, 2, f.ended.Load())
}
