package engine

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// TestPanicInACallback: it is reported, and the callbacks after it are called.
func TestPanicInACallback(t *testing.T) {
	p := newScripted(t, 1)
	var reported []any
	p.engine.onPanic = func(v any, stack []byte) {
		require.Contains(t, string(stack), "TestPanicInACallback")
		reported = append(reported, v)
		panic("the report panics too")
	}
	ops := p.batch(Acquire, "0", "1", "2", "3")
	ops[0].then = func() { panic("first") }
	ops[2].then = func() { panic(fmt.Errorf("third")) }
	p.turn(func() { p.reply(p.sent[0], 0, ok, ok, ok, ok) })
	require.Equal(t, []any{"first", fmt.Errorf("third")}, reported)
	for _, op := range ops {
		require.Equal(t, 1, op.times)
	}
	p.idle()
}

// TestAReplacedCallerMakesNoCall: the calls that wait are those of its successor.
func TestAReplacedCallerMakesNoCall(t *testing.T) {
	var c callbacks
	var j job
	c.add(new(event[Vote]))
	c.replace()
	require.False(t, c.next(0, &j))
	require.True(t, c.next(1, &j))
}

// TestATickBesideHooks: hooks are called again and again while no node owes anything, and a release that is due to a node
// is handed off in time all the same.
func TestATickBesideHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newScripted(t, 1)
		e := New(Config{Clock: clock.New(), MaxWaiting: 4, Timeout: 20 * time.Millisecond})
		p.engine = e
		e.Start(p)
		e.lock.Lock()
		e.turn(func() {
			e.ledger.hints[0].met = true
			e.ledger.hints[0].add(owed{hint: hint{key: "k", token: strings.Repeat("x", 20), kind: Release}, due: e.nodes.clock.Now().Add(250 * time.Millisecond)})
			e.nodes.pulse.see(MaxTimeout)
		})
		for range 100 {
			e.Inform(News(func() {}))
			time.Sleep(4 * time.Millisecond)
		}
		e.lock.Lock()
		e.turn(func() { require.Empty(t, e.ledger.hints[0].all) })
		late := make(chan struct{})
		close(late)
		e.Close(late)
	})
}

// TestVotesAreBounded: votes that are not reported do not fill the memory. As many as
// are promised wait; those that were reported do not count.
func TestVotesAreBounded(t *testing.T) {
	var c callbacks
	for range maxEvents + 10 {
		c.add(new(event[Vote]))
	}
	require.Len(t, c.events, maxEvents)
	const reported = maxEvents / 4
	for range reported {
		c.next(0, new(job))
	}
	for range reported + 1 {
		c.add(new(event[Vote]))
	}
	require.EqualValues(t, maxEvents, c.waiting.Load())
}
