package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/quorum"
)

// TestNoOperationIsLeftBehind: an operation that is submitted after the driver's last look
// at the queue, while the driver still has its lock, is sent by that driver: it looks
// once more. So do a submitter, the reader, the watchdog and a dialer.
func TestNoOperationIsLeftBehind(t *testing.T) {
	for name, drive := range map[string]func(p *scriptedFleet){
		"submitter": func(p *scriptedFleet) { p.submit(Release, "first") },
		"turn": func(p *scriptedFleet) {
			p.queue(Release, "first")
			p.turn(func() {})
		},
		"dialer": func(p *scriptedFleet) {
			p.engine.DriverLock().Lock()
			p.submit(Release, "first")
			p.engine.DriverLock().Unlock()
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newScripted(t, 1)
			p.engine.ledger.window.size = 2 // open also when a batch is out
			var late *countedOp
			p.onArm = func() { late = p.submit(Release, "late") }
			drive(p)
			require.NotNil(t, late)
			require.Zero(t, p.engine.queue.size.Load())
			require.EqualValues(t, inFlight, late.state.Load()&phaseMask)
			require.Contains(t, p.last().bytes, "late")
		})
	}
}

// TestResultsComeBeforeReuse: a driver may find operations that are settled and not
// completed, as after a panic. It completes them before it uses their batch again.
func TestResultsComeBeforeReuse(t *testing.T) {
	p := newScripted(t, 1)
	won := p.submit(Acquire, "won")
	e := p.engine
	e.lock.Lock()
	p.reply(p.sent[0], 0, ok)
	require.Len(t, e.ledger.free.all, 1)
	require.NoError(t, e.queueOne(&p.op(Release, "next").Op))
	e.flush()
	e.lock.Unlock()
	p.callBack()
	require.Equal(t, 1, won.times)
	require.NoError(t, won.Err)
	require.Equal(t, 1, won.Tally.Count(quorum.Granted))
	require.Same(t, p.sent[0].batch, p.sent[1].batch, "the batch was not used again")
}

// refilled is a Fleet under which the queue is never empty: whenever a driver looks
// which nodes are away, another operation is submitted.
type refilled struct {
	*scriptedFleet
	kind  Kind
	looks int
	wakes int
}

func (r *refilled) Wake() { r.wakes++ }

func (r *refilled) Away() quorum.Set {
	r.looks++
	if r.looks < 1000 {
		require.NoError(r.t, r.engine.queueOne(&r.op(r.kind, "one more").Op))
	}
	return r.scriptedFleet.Away()
}

// TestATurnIsBounded: a driver sends what was queued when its turn began, up to a bound, and a
// submitter takes maxTurns turns at most, also if more is submitted meanwhile.
func TestATurnIsBounded(t *testing.T) {
	// An acquire fails at once and is not sent; a release is, after another look.
	for kind, looks := range map[Kind]int{Acquire: 1, Release: 2} {
		r := &refilled{scriptedFleet: newScripted(t, 3), kind: kind}
		r.down = 0b111
		attach(r.engine, r)
		r.engine.callbacks.wake = func() {} // their goroutine would drive too
		r.submit(kind, "first")
		require.Equal(t, looks*maxTurns, r.looks)
		require.EqualValues(t, looks, r.engine.queue.size.Load(), "the last are left to the reader")
		require.Equal(t, 1, r.wakes, "the reader sleeps")
		r.engine.lock.Lock()
		r.engine.flush()
		r.engine.lock.Unlock()
		require.Equal(t, looks*(maxTurns+1), r.looks)
	}
	for kind := range map[Kind]bool{Acquire: true, Release: true} {
		p := newScripted(t, 3)
		p.down, p.engine.queue.limit = 0b111, 3*scanWaiting
		for range p.engine.queue.limit {
			p.queue(kind, "one of many")
		}
		p.engine.flush()
		require.EqualValues(t, 2*scanWaiting, p.engine.queue.size.Load())
		p.turn(func() {})
		p.idle()
	}
}

// TestAcquireBehindABurst: where too few nodes can vote an acquire does not wait for the window, nor for what is ahead.
func TestAcquireBehindABurst(t *testing.T) {
	p := newScripted(t, 3)
	p.down, p.engine.queue.limit = 0b011, 4*scanWaiting
	for range 3 * scanWaiting {
		p.queue(Release, "one of many")
	}
	p.turn(func() {})
	require.False(t, p.engine.ledger.window.isOpen.Load())
	vain := p.submit(Acquire, "k")
	for range 3 {
		p.turn(func() {})
	}
	require.Equal(t, 1, vain.times)
	require.Equal(t, ErrNoQuorum, vain.Err)
	require.Len(t, p.sent, 1)
}

// TestCollecting: while callbacks or callers run, submitters leave it to another
// goroutine to drive, but for collectFor at most, and not after them.
func TestCollecting(t *testing.T) {
	for name, run := range map[string]func(p *scriptedFleet, meanwhile func()){
		"callbacks": func(p *scriptedFleet, meanwhile func()) {
			p.submit(Acquire, "key").then = meanwhile
			p.turn(func() { p.reply(p.sent[0], 0, ok) })
		},
		"callers": func(p *scriptedFleet, meanwhile func()) {
			for range 2 {
				require.NoError(t, p.engine.queueOne(&p.engine.call(Acquire, "key", time.Second).Op))
			}
			p.turn(func() {})
			p.arrived = func() { p.reply(p.sent[0], 0, ok, null) }
			p.engine.receive(func(int) { meanwhile() })
		},
	} {
		for _, slow := range []bool{false, true} {
			t.Run(fmt.Sprint(name, slow), func(t *testing.T) {
				p := newScripted(t, 1)
				run(p, func() {
					p.submit(Release, "first")
					require.Len(t, p.sent, 1, "it is sent alone")
					if slow {
						p.clock.Advance(collectFor + 2*collectEach)
						p.submit(Release, "second")
						require.Len(t, p.sent, 2, "it waits for them")
					}
				})
				require.Len(t, p.sent, 2, "it is left behind")
				p.turn(func() { p.fail(p.sent[1], 0, errLost) })
				p.submit(Release, "behind")
				require.Len(t, p.sent, 3, "it waits for a goroutine that sleeps")
			})
		}
	}
}

// TestWindowWaitsForAReply: a batch that a quorum of nodes fails at once does not make
// room for the next at once, but when a live node has replied, or time is up.
func TestWindowWaitsForAReply(t *testing.T) {
	p := newScripted(t, 3)
	p.down = 0b011
	for i, end := range []func(){
		func() { p.reply(p.last(), 2, one) },
		func() { p.clock.Advance(20 * time.Millisecond); p.engine.tick() },
	} {
		p.submit(Release, "first")
		p.submit(Release, "second")
		require.Len(t, p.sent, 2*i+1, "the window is open")
		p.turn(end)
		require.Len(t, p.sent, 2*i+2, "the window is shut")
		p.turn(func() {
			for _, s := range p.sent {
				if s.next[2] >= 0 {
					p.reply(s, 2, one)
				}
			}
		})
		p.idle()
	}
}

// TestAnIdleFleetIsArmed: the end of a connection that is asked nothing is noticed.
func TestAnIdleFleetIsArmed(t *testing.T) {
	p := newScripted(t, 1)
	p.submit(Release, "key")
	p.turn(func() { p.reply(p.last(), 0, one) })
	p.tick(0)
	p.tick(0)
	require.False(t, p.engine.nodes.pulse.awake.Load())
	require.True(t, p.engine.armed)
}

// TestDriveAtOnce: the release of a process that may end is sent when DriveAtOnce returns, though others hold the
// driver lock for a moment, collect, or have filled the window with one operation; but several others are not
// overtaken.
func TestDriveAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		before func(p *scriptedFleet)
		sent   int
	}{
		"collecting": {func(p *scriptedFleet) { p.engine.collectCalls.Store(int64(p.clock.Now().Add(time.Hour))) }, 1},
		"renewal":    {func(p *scriptedFleet) { p.submit(Extend, "key") }, 2},
		"others":     {func(p *scriptedFleet) { p.submit(Extend, "key"); p.submit(Acquire, "other") }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newScripted(t, 1)
			test.before(p)
			require.NoError(t, p.discard("key"))
			p.engine.DriveAtOnce()
			require.Len(t, p.sent, test.sent)
			require.Zero(t, p.engine.ledger.window.extra)
		})
	}
	t.Run("the lock is held", func(t *testing.T) {
		p := newScripted(t, 1)
		p.engine.Listen(1) // so that Arm is called
		p.engine.lone.Store(true)
		done := make(chan struct{})
		p.onArm = func() { // of DriveSoon, which gives the lock up and does not drive
			go func() {
				defer close(done)
				_ = p.discard("key")
				p.engine.DriveAtOnce()
			}()
			select {
			case <-done:
			case <-time.After(20 * time.Millisecond):
			}
		}
		p.engine.DriveSoon()
		<-done
		require.Len(t, p.sent, 1)
	})
}

// TestDriveSoon: the release of one of several callers is sent at once.
func TestDriveSoon(t *testing.T) {
	p := newScripted(t, 1)
	for _, key := range []string{"a", "b"} {
		require.NoError(t, p.engine.queueOne(&p.engine.call(Acquire, key, time.Second).Op))
	}
	p.turn(func() {})
	p.arrived = func() { p.reply(p.last(), 0, ok, ok) }
	p.engine.receive(func(calls int) { require.Equal(t, 2, calls) })
	require.NoError(t, p.discard("a"))
	p.engine.DriveSoon()
	require.Len(t, p.sent, 2)
}

func (p *scriptedFleet) discard(key string) error {
	var l list
	l.push(&p.op(Release, key).Op)
	return p.engine.queueReleases(l, nil, false)
}
