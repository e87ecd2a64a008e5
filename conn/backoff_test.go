package conn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/scripted"
)

// TestPauses: they are random, within a bound that doubles. After a permanent error they are long.
func TestPauses(t *testing.T) {
	for _, rnd := range []float64{0, 0.25, 0.5, 1 - 1e-9} {
		f := &Fleet{cfg: Config{knobs: &knobs.Conn{Rand: func() float64 { return rnd }}}.withDefaults()}
		for attempt := 1; attempt < 100; attempt++ {
			bound := min(maxBackoff, minBackoff<<min(attempt-1, 8))
			assert.InDelta(t, rnd*float64(bound), f.backoff(attempt, nil), float64(time.Millisecond), "attempt %d", attempt)
			assert.GreaterOrEqual(t, f.backoff(attempt, nil), time.Millisecond)
		}
		assert.InDelta(t, (1+2*rnd)*float64(time.Second), f.backoff(1, ErrAuth), float64(time.Millisecond))
	}
}

// A refused node waits long, and so does one whose connection a permanent
// error has ended. Others are dialed as always.
func TestPermanentErrorsAreNotDialedInHaste(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		ps := []*scripted.Server{scripted.New(t, answers("HELLO", "-WRONGPASS\r\n")), scripted.New(t), scripted.New(t, answers("INFO", "-LOADING\r\n"))}
		r := newTestFleet(t, portable, ps, func(cfg *Config) { cfg.permanentPause = time.Hour })
		r.wires[1] = ps[1].Next(t)
		r.until("for the one that is up", func() bool { return r.Up(1) })
		r.do(func() { assert.EqualValues(t, 0b101, r.Away()) })
		l := newLedger(t, []string{"x"})
		l.onReply = func(int, int) error { return ErrNotMaster }
		r.do(func() { r.giveTo(1, l) })
		r.wires[1].Send(echoes("x"))
		r.awaitDone(l)
		r.until("for it to be taken down", func() bool { return !r.Up(1) })
		r.do(func() { assert.EqualValues(t, 0b111, r.Away()) })
		testkit.Await(t, "for the one that may come back", func() bool { return ps[2].Dialled.Load() > 20 })
		assert.EqualValues(t, 1, ps[0].Dialled.Load())
		assert.EqualValues(t, 1, ps[1].Dialled.Load())
	})
}

// A server that greets us well and then hangs up, or sends more than it was asked
// for, is dialed as rarely as one that does not answer at all.
func TestNoDialStorm(t *testing.T) {
	t.Parallel() // it waits
	for name, greeting := range map[string]func(int, string) scripted.Steps{
		"hangs up after":  func(_ int, honest string) scripted.Steps { return scripted.Steps{honest, scripted.CutOff} },
		"talks after all": func(_ int, honest string) scripted.Steps { return scripted.Steps{honest, "+OK\r\n", scripted.Mute} },
		"both in turn": func(n int, honest string) scripted.Steps {
			return []scripted.Steps{{honest + "+OK\r\n", scripted.Mute}, {honest, scripted.CutOff}}[n%2]
		},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
				p := scripted.New(t, func(p *scripted.Server) { p.Greeting = greeting })
				start := time.Now()
				r := newTestFleet(t, portable, []*scripted.Server{p}, func(cfg *Config) { knobs.OfConn(cfg).Rand = func() float64 { return 1 } })
				r.until("for the fourth dial", func() bool { return p.Dialled.Load() >= 4 })
				assert.GreaterOrEqual(t, time.Since(start), (1+2+4)*minBackoff)
			})
		})
	}
}
