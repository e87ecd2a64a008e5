package waiting

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/internal/rules/contention"
	"github.com/redlock-go/redlock/quorum"
)

// testLines returns lines without a node that can push: a turn comes at once, unless the lock has a holder.
func testLines() *Lines {
	retry, _ := Retry{}.Check()
	return New(Config{Env: engine.Env{Clock: clock.New(), Nodes: []string{"a", "b", "c"}, Ring: func() {}}, Retry: retry})
}

// calls is an engine that sends nothing.
var calls = engine.New(engine.Config{Clock: clock.New()})

// stand has a caller stand in the line for a key.
func (l *Lines) stand(key string) *Demand {
	call, _ := calls.Call(engine.Acquire, key, time.Second)
	return l.Stand(false, call, Seat{Lines: l, Key: key, Wants: Passable{TTL: time.Second}})
}

// await is Await with a bound.
func (d *Demand) await(t *testing.T, tries *Tries) Reason {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	why, _, _ := d.Await(engine.Limit{Done: ctx.Done()}, tries)
	return why
}

// TestLine is compared with a list, over random changes.
func TestLine(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	l := testLines()
	k := &desk{lines: l}
	var want, outside []*place
	for range 20 {
		outside = append(outside, &place{weight: full})
	}
	for range 20_000 {
		if random.IntN(2) == 0 && len(want) > 0 {
			i := random.IntN(len(want))
			p := want[i]
			want = slices.Delete(want, i, i+1)
			k.remove(p)
			outside = append(outside, p)
		} else if len(outside) > 0 {
			k.push(outside[0])
			want, outside = append(want, outside[0]), outside[1:]
		}
		var have []*place
		for p := k.first; p != nil; p = p.next {
			require.NotEqual(t, out, p.stage)
			have = append(have, p)
		}
		require.EqualValues(t, len(want), k.callers())
		require.EqualValues(t, len(want), l.places.Load())
		require.True(t, slices.Equal(want, have))
	}
}

// TestDeskIsKept for three seconds after its last caller, and while it asks.
func TestDeskIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := testLines()
		d := l.stand("a")
		kept, s := d.places[0].desk, d.places[0].desk.shard
		d.Leave()
		require.Equal(t, l.cfg.Clock.Now().Add(3*time.Second), s.next(), "it is called then")
		time.Sleep(3*time.Second - time.Nanosecond)
		kept.advance()
		require.Same(t, kept, s.desks["a"], "known")
		require.True(t, l.IsContended("a"))
		time.Sleep(time.Nanosecond)
		kept.asked = new(inquiry)
		kept.advance()
		require.Same(t, kept, s.desks["a"], "it asks a node")
		kept.asked = nil
		kept.advance()
		require.Empty(t, s.desks)
		require.False(t, l.HasDesks())
	})
}

// TestYoungestGrant: it alone is passed on. A grant that was on its way at that moment does not stand while the lock
// that was passed on is in use; an older one than that never does.
func TestYoungestGrant(t *testing.T) {
	l := testLines()
	older, old := engine.Serial(), engine.Serial()
	require.True(t, l.Granted("a", old, false))
	s := l.lock("a")
	k, _ := l.deskFor(s, "a")
	s.mu.Unlock()
	now := l.cfg.Clock.Now()
	require.False(t, k.mayPass(older, now))
	require.True(t, k.mayPass(old, now))
	onItsWay := engine.Serial()
	k.passed(now, now.Add(time.Minute))
	require.False(t, l.Granted("a", onItsWay, false))
	k.freed(0, now)
	require.False(t, l.Granted("a", onItsWay, false), "an older lock has ended, as one of several keys")
	k.granted(now, now.Add(time.Minute))
	sent := engine.Serial()
	require.True(t, l.Granted("a", sent, false))
	require.False(t, k.mayPass(old, now))
	k.freed(old, now)
	require.NotZero(t, k.held, "a younger one may be held")
	k.freed(sent, now)
	require.Zero(t, k.held)
	require.False(t, l.Granted("a", onItsWay, false), "past")
	require.False(t, k.mayPass(old, now))
	l.Doubt("a")
	require.False(t, k.mayPass(sent, now))
	require.True(t, l.Granted("a", engine.Serial(), false))
	require.True(t, k.mayPass(k.youngest, now))

	// A shared grant is one too. It stands beside others that share the lock.
	late, shared := engine.Serial(), engine.Serial()
	k.passed(now, now.Add(time.Minute))
	require.False(t, l.Granted("a", shared, true), "on its way as the lock was passed on")
	k.freed(k.youngest, now)
	require.True(t, l.Granted("a", shared, true))
	require.False(t, k.mayPass(k.youngest, now))
	require.False(t, l.Granted("a", late, false), "past")
	require.True(t, l.Granted("a", late, true))
	require.True(t, l.Granted("a", engine.Serial(), false))
	require.False(t, l.Granted("a", shared, true), "past")
}

// TestTurnOfOneThatLeaves: a caller that leaves while it is given the turn gives it on. Else no caller of the process
// would ask for the key any more.
func TestTurnOfOneThatLeaves(t *testing.T) {
	l := testLines()
	for range 20_000 {
		first, second, third := l.stand("k"), l.stand("k"), l.stand("k")
		tries := l.NewTries("k", 0)
		tries.Wait(false, 0)
		why := first.await(t, &tries)
		require.Equal(t, MayAttempt, why)
		var ended sync.WaitGroup
		ended.Go(func() { first.Attempted(holding.Hold{}, quorum.Tally{}, context.Canceled, false) })
		runtime.Gosched()
		second.Leave()
		ended.Wait()
		why = third.await(t, &tries)
		require.Equal(t, MayAttempt, why)
		third.Attempted(holding.Hold{}, quorum.Tally{}, context.Canceled, false)
		first.Leave()
		third.Leave()
		require.Zero(t, l.waiting.Inside()+int(l.places.Load()))
	}
}

// TestGivenWhileItRests: a caller that asks the nodes or is in user code is given nothing, and comes first again where
// it rests: a turn that was offered meanwhile is its own.
func TestGivenWhileItRests(t *testing.T) {
	l := testLines()
	first := l.stand("k")
	tries := l.NewTries("k", 0)
	tries.Wait(false, 0)
	_ = first.await(t, &tries)
	k := first.places[0].desk
	first.Attempted(holding.Hold{}, quorum.Tally{}, engine.ErrExpired, false)
	require.False(t, k.offers, "it pauses")
	l.Freed("k", 0)
	require.True(t, k.offers, "its only caller is in user code")
	second := l.stand("k")
	why := second.await(t, &tries)
	require.Equal(t, MayAttempt, why)
	second.Attempted(holding.Hold{}, quorum.Tally{}, context.Canceled, false)
	second.Leave()
	require.True(t, k.offers)
	why = first.await(t, &tries)
	require.Equal(t, MayAttempt, why)
	first.Leave()
}

// TestSentAlong: a call that a release has taken along is an attempt, also if its caller gives up or has no other left
// in the same moment: its end is awaited, before the call is used again.
func TestSentAlong(t *testing.T) {
	for _, ended := range []bool{false, true} {
		l := testLines()
		d := l.stand("k")
		k := d.places[0].desk
		k.endTurn(&d.places[0])
		d.state, d.gift = rests, nil // as after an attempt
		around := l.around(k, l.cfg.Clock.Now())
		around.Usable = quorum.Only(0)
		k.Entered(&around, contention.Step{}, contention.Entry{First: true, Lease: time.Minute})
		call := k.along(0, around.Now)
		require.Same(t, d.call, call)
		done := make(chan struct{})
		tries := l.NewTries("k", 0)
		tries.limit, tries.next = 1, 1
		if ended {
			close(done)
		}
		call.Complete(nil)
		why, _, _ := d.Await(engine.Limit{Done: done}, &tries)
		require.Equal(t, Sent, why)
		require.Zero(t, tries.Attempts)
		d.Attempted(holding.Hold{}, quorum.Tally{}, context.Canceled, false)
		d.Leave()
		require.Zero(t, k.turns)
	}
}

// TestTurnBeforeTheLastPause: a caller that is given its turn as its last pause ends has it.
func TestTurnBeforeTheLastPause(t *testing.T) {
	l := testLines()
	d := l.stand("k")
	tries := l.NewTries("k", 0)
	tries.limit, tries.next = 1, 1
	why, _, _ := d.Await(engine.Limit{}, &tries)
	require.Equal(t, MayAttempt, why)
	require.Zero(t, tries.Attempts)
	d.Leave()
}

// TestAttemptBehindAQuestion: a caller whose pause ends while its desk asks a slow node has used no attempt. It has its
// turn once the node has answered, also if the answer tells it to wait.
func TestAttemptBehindAQuestion(t *testing.T) {
	l := testLines()
	d := l.stand("k")
	k := d.places[0].desk
	tries := l.NewTries("k", 0)
	var denied quorum.Tally
	denied.Reset(quorum.Majority(quorum.First(3)))
	denied.Record(0, quorum.Denied)
	_, _, _ = d.Await(engine.Limit{}, &tries)
	d.Attempted(holding.Hold{}, denied, engine.ErrTaken, true)
	k.asked = new(inquiry)
	tries.limit, tries.next = 1, 1
	require.Equal(t, none, d.due(&tries))
	require.Zero(t, tries.Attempts)
	k.asked = nil
	k.advance()
	why, _, _ := d.take(none)
	require.Equal(t, MayAttempt, why)
	d.Leave()
}

// TestForgottenDeskDoesNotMove: a caller that comes back to rest may refer to a desk that is forgotten since.
func TestForgottenDeskDoesNotMove(t *testing.T) {
	l := testLines()
	d := l.stand("k")
	k := d.places[0].desk
	tries := l.NewTries("k", 0)
	_, _, _ = d.Await(engine.Limit{}, &tries)
	d.Attempted(holding.Hold{}, quorum.Tally{}, engine.ErrExpired, false)
	l.Freed("k", 0)
	require.True(t, k.offers)
	now := l.cfg.Clock.Now()
	k.remove(&d.places[0])
	k.known = 1 // as if there were too many
	k.passed(now, now)
	require.False(t, l.HasDesks())
	younger := l.stand("k")
	_, _, _ = d.Await(engine.Limit{At: 1}, &tries)
	require.True(t, l.HasDesks())
	require.Same(t, younger.places[0].desk, k.shard.desks["k"])
}
