package engine

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPanicInACallback: it is reported, and the callbacks behind it are called.
func TestPanicInACallback(t *testing.T) {
	p := newPuppet(t, 1)
	var reported []any
	p.engine.onPanic = func(v any, stack []byte) {
		require.Contains(t, string(stack), "TestPanicInACallback")
		reported = append(reported, v)
		panic("the report panics too")
	}
	var ops [4]*outcome
	for i := range ops {
		ops[i] = p.op(Acquire, fmt.Sprint(i))
		require.NoError(t, p.engine.enqueue(&ops[i].Op))
	}
	ops[0].then = func() { panic("first") }
	ops[2].then = func() { panic(fmt.Errorf("third")) }
	p.engine.drive(nil)
	p.turn(func() { p.reply(p.sent[0], 0, ok, ok, ok, ok) })
	require.Equal(t, []any{"first", fmt.Errorf("third")}, reported)
	for _, op := range ops {
		require.Equal(t, 1, op.times)
	}
	p.idle()
}

// TestCallbackThatEndsItsGoroutine: another goes on.
func TestCallbackThatEndsItsGoroutine(t *testing.T) {
	f := newEcho(1, true)
	e := f.start(t)
	done := make(chanOp, 1)
	bad := done.acquire("bad")
	bad.Done = completion(func() { runtime.Goexit() })
	require.NoError(t, e.Submit(bad))
	require.NoError(t, e.Submit(done.acquire("good")))
	require.NoError(t, (<-done).Err)
}

type completion func()

func (f completion) Complete(*Op) { f() }

// TestCallbackThatBlocks holds up the others for a moment only, and keeps neither
// submitters nor Close.
func TestCallbackThatBlocks(t *testing.T) {
	f := newEcho(1, true)
	e := f.start(t)
	release := make(chan struct{})
	returned := make(chan struct{})
	done := make(chanOp, 10)
	for range 3 {
		bad := done.acquire("bad")
		bad.Done = completion(func() { <-release; returned <- struct{}{} })
		require.NoError(t, e.Submit(bad))
		require.NoError(t, e.Submit(done.acquire("good")))
		<-done
	}
	require.EqualValues(t, 3, e.callbacks.caller, "one goroutine for each that blocks")
	e.Close(time.Hour)
	close(release)
	for range 3 {
		<-returned
	}
}
