package conn

import (
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/scripted"
)

func (r *testFleet) allUp() {
	r.t.Helper()
	for i := range r.Len() {
		r.until("for a node to come up", func() bool { return r.Up(i) })
	}
}

// TestNoWakeUpIsLost goes back and forth many times with an owner who reads only
// when it was woken, or sometimes a little before that, as a caller does who is
// alone. One lost wake-up and it sleeps for ever.
func TestNoWakeUpIsLost(t *testing.T) {
	trips := 20_000 // to each of two nodes
	switch {
	case testkit.Long():
		trips = 200_000
	case testkit.Race, testing.Short():
		trips = 5_000
	}
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		if portable {
			trips /= 5 // no nested epoll here, and slower
		}
		r := newTestFleet(t, portable, scripted.NewN(t, 2, func(p *scripted.Server) { p.Serve = scripted.Echo }))
		r.allUp()
		rnd := rand.New(rand.NewPCG(1, 2))
		l := newLedger(t, []string{"x"})
		post := func() {
			*l = ledger{Batch: l.Batch, t: t, tags: l.tags, nodes: l.nodes, due: r.Len()}
			l.Owner = l
			clear(l.nodes)
			r.Send(&l.Batch)
		}
		l.nodes = make([]account, r.Len())
		done := make(chan int, 1)
		r.do(func() { post(); r.Arm(false) })
		go func() {
			n := 0
			defer func() { done <- n }()
			for r.Wait() {
				r.lock.Lock()
				r.Sweep(0)
				for l.doneCalls > 0 && n < trips {
					n++
					if n == trips {
						break
					}
					switch post(); rnd.IntN(4) {
					case 0:
						r.Sweep(0)
					case 1:
						r.Arm(false) // twice is once
					case 2:
						r.Sweep(10 * time.Microsecond)
					}
				}
				r.Arm(false)
				r.lock.Unlock()
				runtime.Gosched() // something arrives in between
				if n == trips {
					return
				}
			}
		}()
		select {
		case n := <-done:
			assert.Equal(t, trips, n)
		case <-time.After(3 * testkit.Patience):
			require.FailNow(t, "asleep for ever")
		}
	})
}

// Sweep waits for an arrival where it can.
func TestSweepBlocks(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		r := newUpFleet(t, portable, 2)
		r.do(func() { assert.Equal(t, !portable, r.CanBlock()) })
		if portable {
			return
		}
		l := r.send("x")
		r.answer(l)
		r.do(func() {
			for deadline := time.Now().Add(testkit.Patience); l.doneCalls == 0 && time.Now().Before(deadline); {
				r.Sweep(testkit.Patience) // ends at the arrival, or with a signal
			}
		})
		assert.Equal(t, 1, l.doneCalls)
	})
}

// Wake ends the sweep that blocks, or the next one, once; however often it was
// called, it costs its caller no wait, also when the fleet is closed.
func TestWakeEndsASweep(t *testing.T) {
	if !rawSupported {
		t.Skip("no sweep blocks here")
	}
	r := newUpFleet(t, false, 2)
	for range 1000 { // more than the bytes of a pipe would hold in either of them
		r.Wake()
	}
	testkit.Within(t, testkit.Patience, "the sweep behind", func() { r.do(func() { r.Sweep(time.Hour) }) })
	testkit.Within(t, testkit.Patience, "the sweep during", func() {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r.do(func() { r.Sweep(time.Hour) })
		}()
		r.Wake()
		<-ended
	})
	r.do(func() {
		r.Sweep(0)
		require.Zero(t, r.ready, "reported twice, or as a node")
	})
	r.do(r.Close)
	r.Wake()
}

// A quiet fleet has nothing to report, however its nodes came to be so: a sweep
// that finds something again and again would have its owner spin.
func TestAQuietFleetReportsNothing(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		r := newUpFleet(t, portable, 3, func(cfg *Config) { knobs.OfConn(cfg).Rand = func() float64 { return 0.9 } })
		quiet := func(when string) {
			t.Helper()
			r.until("for quiet after "+when, func() bool { return r.ready == 0 }) // the nodes for Sweep
		}
		quiet("the start")
		r.works()
		quiet("an answer")
		r.wires[0].Half()
		r.lose(0)
		quiet("a half-close")
		r.wires[1].Send("unasked")
		r.lose(1)
		quiet("a fault")
		r.up()
		quiet("the return")
		l := r.sendLarge(8<<20, "large")
		quiet("a write that was cut short")
		r.meanwhile(func() {
			for _, w := range r.wires {
				w.Expect(string(l.Buf))
				w.Send(strings.TrimSuffix(echoes("large"), "\n"))
			}
		})
		quiet("its end, in the middle of the reply")
		for _, w := range r.wires {
			w.Send("\n")
		}
		r.awaitDone(l)
		quiet("the reply")
	})
}
