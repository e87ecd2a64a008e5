package engine

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func (e *Engine) call(kind Kind, key string, ttl time.Duration) *Call {
	c, err := e.Call(kind, key, ttl)
	if err != nil {
		panic(err)
	}
	return c
}

// TestAloneLeavesNothingWaiting: what is submitted while a caller reads alone is
// sent when it is done, and the reader is armed for it.
func TestAloneLeavesNothingWaiting(t *testing.T) {
	p := newScripted(t, 1)
	var other *countedOp
	p.onSweep = func() {
		if other == nil {
			other = p.submit(Release, "other")
			p.reply(p.sent[0], 0, ok)
		}
	}
	c := p.engine.call(Acquire, "key", time.Second)
	require.NoError(t, p.engine.do(context.Background(), c))
	require.Len(t, p.sent, 2)
	require.Equal(t, 1, p.armed)
	require.True(t, p.engine.armed || p.engine.armedLate)
	p.turn(func() { p.reply(p.sent[1], 0, one) })
	require.Equal(t, 1, other.times)
	p.idle()
}

// TestEarlyNodesWakeNoReader: while no node has answered the only batch, the answers of early nodes alone decide nothing,
// and the reader is woken by others. It is woken by all from the first answer on, where a node was not sent the batch
// or cannot vote, and while another batch is undecided.
func TestEarlyNodesWakeNoReader(t *testing.T) {
	p := newScripted(t, 5)
	first := p.submit(Acquire, "first")
	require.True(t, p.engine.armedLate)
	require.False(t, p.engine.armed)
	p.turn(func() { p.reply(p.sent[0], 0, ok) })
	require.True(t, p.engine.armed, "the answers of two early nodes may decide now")
	p.turn(func() {
		for node := 1; node < 5; node++ {
			p.reply(p.sent[0], node, ok)
		}
	})
	require.Equal(t, 1, first.times)
	p.idle()
	for what, disturb := range map[string]func(p *scriptedFleet){
		"a node is down":             func(p *scriptedFleet) { p.down.Add(4) },
		"a node has no vote":         func(p *scriptedFleet) { p.quarantined.Add(4) },
		"a caller listens":           func(p *scriptedFleet) { p.engine.Listen(1) },
		"early nodes can decide":     func(p *scriptedFleet) { p.engine.nodes.undeciding = false },
		"another batch is undecided": func(p *scriptedFleet) { p.engine.ledger.window.size = 2; p.submit(Release, "another") },
	} {
		p := newScripted(t, 5)
		disturb(p)
		p.engine.armed, p.engine.armedLate = false, false
		p.submit(Acquire, "key")
		require.True(t, p.engine.armed, what)
		require.False(t, p.engine.armedLate, what)
	}
}

// TestAloneEnds: a caller that gets no reply gives the driver lock up in time, with the
// reader armed.
func TestAloneEnds(t *testing.T) {
	p := newScripted(t, 1)
	ctx, cancel := context.WithCancel(context.Background())
	sweeps := 0
	p.onSweep = func() {
		p.clock.Advance(aloneFor / 4)
		sweeps++
		if sweeps == 6 {
			t.Error("it does not end")
		}
	}
	c := p.engine.call(Acquire, "key", time.Second)
	require.NoError(t, p.engine.queueOne(&c.Op))
	c.limit.Done = ctx.Done()
	p.engine.drive(c.lone(c.start))
	require.Equal(t, 4, sweeps)
	require.Equal(t, 1, p.armed)

	cancel()
	p.tick(0)
	<-c.done
	require.Equal(t, context.Canceled, c.Err)
	sweeps = 0
	p.turn(func() { p.reply(p.sent[0], 0, ok) })
	p.turn(func() { p.reply(p.sent[1], 0, one) })
	d := p.engine.call(Release, "key", 0)
	p.engine.keeping = 0 // or it parks
	require.NoError(t, p.engine.queueOne(&d.Op))
	d.limit.Done = ctx.Done()
	p.engine.drive(d.lone(d.start))
	require.Zero(t, sweeps, "its context had ended")
}

// TestAloneLetsOthersRun: with one processor a caller goes to the kernel only when no other goroutine can run: one that is
// about to submit would wait until the runtime preempts the caller. In a row of calls one parks every 2 ms.
func TestAloneLetsOthersRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	took, sweeps := keptFor/8, 0
	fleet := func() *scriptedFleet {
		p := newScripted(t, 1)
		p.onSweep = func() {
			sweeps++
			p.clock.Advance(took)
			p.reply(p.last(), 0, ok)
		}
		return p
	}
	call := func(p *scriptedFleet) {
		c := p.engine.call(Acquire, "key", time.Second)
		require.NoError(t, p.engine.queueOne(&c.Op))
		p.engine.drive(c.lone(c.start))
		if len(c.done) == 0 {
			p.turn(func() { p.reply(p.last(), 0, ok) })
		}
		<-c.done
		c.Free()
	}
	p := fleet()
	for range 3 {
		sweeps = 0
		for i := range 9 {
			call(p)
			require.Equal(t, i == 8, p.armed > 0, "a caller that is alone needs no reader")
		}
		require.Equal(t, 8, sweeps, "the ninth parks")
		p.armed = 0
	}

	ran := false
	for i := 0; i < 10 && !ran; i++ { // at one of 61 ticks the runtime has the caller go on first
		p, queued := fleet(), make(chan struct{})
		sweeps = 0
		go func() { defer close(queued); p.queue(Release, "other") }()
		call(p)
		<-queued
		ran = sweeps == 0 && p.armed > 0
	}
	require.True(t, ran, "another operation waits")
}

// TestAloneInTheClient: a caller keeps its processor while it waits only where the other groups of
// the client do not need it.
func TestAloneInTheClient(t *testing.T) {
	for others := range 4 {
		p, other := newScripted(t, 1), newScripted(t, 1)
		peers := &Peers{procs: 2}
		for _, e := range []*Engine{p.engine, other.engine} {
			e.peers = peers
			peers.add(&e.queue.depth)
		}
		for range others {
			require.NoError(t, other.engine.queueOne(&other.engine.call(Acquire, "key", time.Second).Op))
		}
		sweeps := 0
		p.onSweep = func() {
			sweeps++
			p.clock.Advance(aloneFor)
		}
		c := p.engine.call(Acquire, "key", time.Second)
		require.NoError(t, p.engine.queueOne(&c.Op))
		p.engine.drive(c.lone(c.start))
		require.Equal(t, others < 2, sweeps > 0, others)
	}
}

// TestCallbacksReadTheirOwnReplies: where no other caller waits, the goroutine of callbacks needs no
// reader for what they have submitted, and calls the next as soon as it has read the reply.
func TestCallbacksReadTheirOwnReplies(t *testing.T) {
	for _, others := range []int{0, 1} {
		p := newScripted(t, 1)
		sweeps := 0
		first := p.submit(Acquire, "key")
		var second *countedOp
		first.then = func() {
			second = p.submit(Release, "key")
			for range others {
				require.NoError(t, p.engine.queueOne(&p.engine.call(Acquire, "other", time.Second).Op))
			}
			p.onSweep = func() {
				sweeps++
				p.clock.Advance(aloneFor / 4)
				if sweeps == 2 {
					p.reply(p.last(), 0, one)
				}
			}
		}
		p.turn(func() { p.reply(p.sent[0], 0, ok) })
		require.Len(t, p.sent, 2)
		if others > 0 {
			require.Zero(t, sweeps, "another caller would wait for it")
			require.Equal(t, 2, p.armed)
			continue
		}
		require.Equal(t, 1, second.times)
		require.Equal(t, 2, sweeps, "a callback has to wait")
		require.Equal(t, 1, p.armed, "the reader is woken for it")
		p.idle()
	}
}

// TestReleaseIsSentWithoutACaller: a release whose context has ended is sent all the same, and in its place, also if it
// had to wait for the in-flight window.
func TestReleaseIsSentWithoutACaller(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	p := newScripted(t, 1)
	p.submit(Acquire, "out")
	c := p.engine.call(Release, "mine", time.Second)
	c.limit.Done = ended.Done()
	require.NoError(t, p.engine.queueOne(&c.Op))
	p.submit(Acquire, "mine") // after it
	p.tick(0)
	<-c.done
	require.Equal(t, context.Canceled, c.Err)
	p.turn(func() { p.reply(p.sent[0], 0, ok) })
	require.Len(t, p.sent, 2)
	require.Regexp(t, "(?s)EVALSHA.*mine.*SET.*mine", p.sent[1].bytes, "it has lost its place")
	p.turn(func() { p.reply(p.sent[1], 0, one, ok) })
	p.idle()
}

func (e *Engine) do(ctx context.Context, c *Call) error {
	c.Watch(Limit{Done: ctx.Done()})
	return e.Do(c, nil)
}

// TestScanIsBounded: a tick looks at so many waiting calls and no more, for submitters
// wait for it. The next tick goes on from there.
func TestScanIsBounded(t *testing.T) {
	p := newScripted(t, 1)
	p.engine.queue.limit = 2 * scanWaiting
	p.submit(Release, "the batch that is out")
	ended := make(chan struct{})
	close(ended)
	for i := range 2 * scanWaiting {
		c := p.engine.call(Acquire, "key", time.Hour)
		c.limit.Done = ended
		require.NoError(t, p.engine.queueOne(&c.Op), i)
	}
	for tick := range 2 {
		p.tick(0)
		require.EqualValues(t, (1-tick)*scanWaiting, p.engine.queue.size.Load())
	}
}
