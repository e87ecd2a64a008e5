package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/clock"
)

// wasSent says whether a key is in anything that was sent.
func (p *puppet) wasSent(key string) bool {
	for _, s := range p.sent {
		if strings.Contains(s.bytes, key) {
			return true
		}
	}
	return false
}

// heard is a Completion that may be called on any goroutine.
type heard struct {
	Op
	times atomic.Int64
}

func (h *heard) Complete(*Op) { h.times.Add(1) }

// await waits until operations are completed.
func (p *puppet) await(ops ...*heard) {
	p.t.Helper()
	for _, op := range ops {
		require.Eventually(p.t, func() bool { return op.times.Load() == 1 }, 5*time.Second, time.Millisecond, "%s is not decided", op.Key)
	}
}

// TestDefectWindowOfADecidedBatch: once every round of a batch has its verdict,
// the next batch may go, though nodes still owe replies of the first.
func TestDefectWindowOfADecidedBatch(t *testing.T) {
	enqueue := func(p *puppet, kind Kind, key string, ttl time.Duration) *heard {
		op := &heard{}
		op.Kind, op.Key, op.TTL, op.Done, op.Token = kind, []byte(key), ttl, op, tokenOf(7)
		require.NoError(t, p.engine.enqueue(&op.Op))
		return op
	}
	for name, run := range map[string]func(t *testing.T, p *puppet){
		"four nodes": func(t *testing.T, p *puppet) {
			lost, won := enqueue(p, Acquire, "lost", time.Second), enqueue(p, Acquire, "won", time.Second)
			late := enqueue(p, Acquire, "late", time.Second)
			p.turn(func() {})
			require.Len(t, p.sent, 1)
			require.Equal(t, 3, p.sent[0].batch.Replies)
			// The rounds are decided in the middle of node 2's replies: by two
			// denials the first and the last, by the third grant the other.
			for node := range 2 {
				p.turn(func() { p.reply(p.sent[0], node, null, ok, null) })
			}
			p.turn(func() { p.reply(p.sent[0], 2, null, ok) })
			p.await(lost, won, late)
		},
		"timeouts that differ": func(t *testing.T, p *puppet) {
			slow, quick := enqueue(p, Acquire, "slow", 800*time.Millisecond), enqueue(p, Acquire, "quick", 100*time.Millisecond)
			p.turn(func() {})
			require.Len(t, p.sent, 1)
			require.Equal(t, 2, p.sent[0].batch.Replies)
			p.tick(10 * time.Millisecond)
			p.await(quick)
			for node := range 3 {
				p.turn(func() { p.reply(p.sent[0], node, ok) })
			}
			p.await(slow)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPuppet(t, 4)
			p.engine.timeout = 0 // it follows from the TTL
			run(t, p)
			next := p.op(Release, "next")
			require.NoError(t, p.engine.Submit(&next.Op))
			cleanups := len(p.sent) > 1 // they may go first, and shut the window again
			require.True(t, cleanups || p.wasSent("next"), "the window is shut")
		})
	}
}

// TestDefectTickIsBounded: a tick of the watchdog, which all others wait for,
// does not last longer the more calls wait. Both measurements are of this
// machine, one behind the other, and the least of several.
func TestDefectTickIsBounded(t *testing.T) {
	few, many := tickWith(t, 4<<10), tickWith(t, 64<<10)
	t.Logf("a tick with 4,096 waiting calls takes %v, with 65,536 %v", few, many)
	// A scan of all takes at least 16 times as long, and 40 times where the calls
	// do not fit the processor's cache.
	require.Less(t, many, 8*few+200*time.Microsecond)
}

// tickWith is how long a tick takes with so many calls in the queue.
func tickWith(t *testing.T, calls int) time.Duration {
	p := &puppet{t: t, nodes: 1, clock: clock.NewFake()}
	p.engine = New(Config{Clock: p.clock, MaxWaiting: calls, Timeout: time.Hour})
	attach(p.engine, p)
	p.submit(Release, "the batch that is out")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var wg sync.WaitGroup
	for i := range calls {
		wg.Add(1)
		go func() {
			defer wg.Done()
			c := p.engine.call(Acquire, fmt.Sprint(i), time.Hour)
			defer p.engine.Free(c)
			if err := p.engine.do(ctx, c); err != context.Canceled {
				t.Error(err)
			}
		}()
	}
	for began := time.Now(); p.engine.queue.size.Load() < int64(calls); {
		require.Less(t, time.Since(began), 10*time.Second, "the calls do not queue")
		time.Sleep(time.Millisecond)
	}
	least := time.Hour
	for range 20 {
		p.turn(func() {
			began := time.Now()
			p.engine.tick()
			least = min(least, time.Since(began))
		})
	}
	cancel()
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()
	for began := time.Now(); ; {
		p.turn(func() { p.engine.tick() })
		select {
		case <-ended:
			return least
		case <-time.After(time.Millisecond):
			require.Less(t, time.Since(began), 10*time.Second, "the end of a context is not noticed")
		}
	}
}

// TestDefectVotesKept: as many votes as are promised wait for OnVote. Those that it
// has been told do not count.
func TestDefectVotesKept(t *testing.T) {
	var c callbacks
	for range maxVotes {
		c.vote(vote{})
	}
	const told = maxVotes / 4
	for range told {
		c.next(0, new(job))
	}
	for range told + 1 { // one too many
		c.vote(vote{})
	}
	require.EqualValues(t, maxVotes, c.waiting.Load())
}

// TestDefectRefusedExtends: native extends that a node refuses are sent again as
// script calls, in a time that does not grow with the square of their number.
func TestDefectRefusedExtends(t *testing.T) {
	cost := func(n int) (least time.Duration) {
		least = time.Hour
		for range 3 {
			p := newPuppet(t, 1)
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

// TestDefectDialersBeforeStart: a dialer that gives the driver lock up before Start,
// and has news, does not look at what Start sets. Only -race sees it.
func TestDefectDialersBeforeStart(t *testing.T) {
	for range 50 {
		f := newEcho(1, false)
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
