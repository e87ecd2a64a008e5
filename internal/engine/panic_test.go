package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPanicInACallback: it reaches the goroutine on which it happens. The role
// is free again, and whoever was to be completed after it still is.
func TestPanicInACallback(t *testing.T) {
	p := newPuppet(t, 1)
	blocker := p.submit(Release, "blocker")
	bad := p.op(Acquire, "bad")
	bad.then = func() { panic("callback") }
	require.NoError(t, p.engine.Submit(&bad.Op))
	done := make(chan struct{}, 2)
	var others [2]*outcome
	for i := range others {
		others[i] = p.op(Acquire, "other")
		others[i].then = func() { done <- struct{}{} }
		require.NoError(t, p.engine.Submit(&others[i].Op))
	}
	p.turn(func() { p.reply(p.sent[0], 0, one) })
	require.Equal(t, 1, blocker.times)
	require.PanicsWithValue(t, "callback", func() {
		p.turn(func() { p.reply(p.sent[1], 0, ok, null, null) })
	})
	<-done
	<-done
	p.engine.routines.Wait()
	require.Equal(t, []int{1, 1, 1}, []int{bad.times, others[0].times, others[1].times})
	next := p.submit(Release, "next")
	p.turn(func() { p.reply(p.last(), 0, one) })
	require.Equal(t, 1, next.times)
	p.idle()
}

// TestPanicInSubmit: a callback that panics in the middle of somebody's Submit
// leaves nothing behind that the watchdog does not find.
func TestPanicInSubmit(t *testing.T) {
	p := newPuppet(t, 1)
	p.down = 1
	bad := p.op(Acquire, "bad")
	var inside *outcome
	bad.then = func() {
		inside = p.submit(Acquire, "submitted by the callback")
		panic("callback")
	}
	require.Panics(t, func() { _ = p.engine.Submit(&bad.Op) })
	require.True(t, p.engine.watchdog.awake)
	p.tick(0)
	require.Equal(t, 1, inside.times)
	p.idle()
}

// TestACallLeftByAPanic: the callback of another's operation may be run by a call,
// and panic there. The call's place, with its result, is not given to the next.
func TestACallLeftByAPanic(t *testing.T) {
	p := newPuppet(t, 1)
	p.down = 1 // so that everything is settled as soon as it is sent
	other := p.op(Release, "other")
	other.then = func() { panic("of a callback") }
	require.NoError(t, p.engine.enqueue(&other.Op))
	c := p.engine.Call(Acquire, "key", time.Second)
	require.PanicsWithValue(t, "of a callback", func() {
		defer p.engine.Free(c)
		_ = p.engine.Do(t.Context(), c)
	})
	p.engine.routines.Wait() // of the rescue
	for range 10 {
		next := p.engine.Call(Acquire, "key", time.Second)
		require.NotSame(t, c, next)
		require.NoError(t, p.engine.Do(t.Context(), next))
		require.Equal(t, ErrNoQuorum, next.Err)
		p.engine.Free(next)
	}
}
