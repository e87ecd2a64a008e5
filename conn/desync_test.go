package conn

import (
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// envLong asks for the long variants of tests.
const envLong = "REDLOCK_LONG"

// desync is a run of many questions to saboteurs: how many there were, and what
// became of them. The rig's lock guards it.
type desync struct {
	r       *rig
	rnd     *rand.Rand
	total   int64 // answers that are wanted
	asked   uint64
	waiting int                    // questions whose answer somebody waits for
	flying  map[*question]struct{} // those and the cancelled ones
	idle    []*question
	done    chan struct{}

	questions, answers, refusals, lost, notSent, cancels, unheard, shortWrites, crossed, broken int64
	example                                                                                     string // of what is crossed
}

const window = 32 // questions open at once

// refill asks until the window is full. Now and then somebody loses interest
// before, and his place is taken while his question is still under way.
func (d *desync) refill() {
	for d.waiting < window && d.answers < d.total && d.someUp() {
		q := &question{run: d}
		if n := len(d.idle); n > 0 {
			q, d.idle = d.idle[n-1], d.idle[:n-1] // a batch is used again at once
		}
		d.ask(q)
		if len(d.flying) < 2*window && d.rnd.IntN(8) == 0 {
			d.cancel()
		}
	}
	if d.answers >= d.total && len(d.flying) == 0 && d.done != nil {
		close(d.done)
		d.done = nil
	}
}

// cancel takes any question's caller away.
func (d *desync) cancel() {
	for q := range d.flying {
		if !q.cancelled {
			q.cancelled = true
			d.waiting--
			d.cancels++
		}
		return
	}
}

// someUp keeps a run from being over within a moment in which nobody is there.
func (d *desync) someUp() bool {
	up := 0
	for i := range d.r.Len() {
		if d.r.Up(i) {
			up++
		}
	}
	return up > d.r.Len()/2
}

// watch is the run's watchdog: it closes what is silent for five ticks, and asks
// again where nobody else would.
func (d *desync) watch(stop <-chan struct{}) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		d.r.do(func() {
			d.r.clock.Advance(DefaultStallTimeout / 5)
			d.r.Check()
			for _, n := range d.r.nodes {
				if n.owed.offset > 0 {
					d.shortWrites++
				}
			}
			d.refill()
			d.r.Arm()
		})
	}
}

// read is the run's reader.
func (d *desync) read() {
	for d.r.Wait() {
		d.r.do(func() {
			d.r.Sweep(0)
			d.refill()
			d.r.Arm()
		})
	}
}

// TestNoReplyIsCrossed asks until it has fifty thousand answers, or a million
// with REDLOCK_LONG=1, each time for another number, while connections break in
// the middle of replies, stall and come back, replies arrive in pieces and callers
// lose interest. Nobody is ever told the number of another; and nothing is left.
func TestNoReplyIsCrossed(t *testing.T) {
	answers := 50_000
	switch {
	case os.Getenv(envLong) == "1":
		answers = 1_000_000
	case testing.Short():
		answers = 5_000
	}
	eachWay(t, func(t *testing.T, w way) {
		if w.server != nil {
			answers /= 2
		}
		warmUp(t)
		routines, files := runtime.NumGoroutine(), openFiles()
		start := time.Now()

		saboteurs := make([]*saboteur, 3)
		ps := make([]*peer, len(saboteurs))
		for i := range saboteurs {
			s := &saboteur{t: t, life: 500, seed: uint64(i)}
			saboteurs[i] = s
			ps[i] = newPeer(t, func(p *peer) { p.serve, p.tls = s.serve, w.server })
		}
		r := newRig(t, w.portable, ps, func(cfg *Config) { cfg.TLS = w.client })
		r.allUp()
		done, stop := make(chan struct{}), make(chan struct{})
		d := &desync{r: r, rnd: rand.New(rand.NewPCG(6, 7)), total: int64(answers), flying: make(map[*question]struct{}), done: done}
		ended := make(chan struct{}, 2)
		go func() { d.watch(stop); ended <- struct{}{} }()
		go func() { d.read(); ended <- struct{}{} }()
		restarts := d.restart(ps, done)
		close(stop)
		r.close()
		<-ended
		<-ended
		for _, p := range ps {
			p.stop()
			p.running.Wait()
		}
		d.report(time.Since(start), saboteurs, ps, restarts)

		require.Zero(t, d.crossed, d.example)
		require.Zero(t, d.broken, "against the rules of Owner")
		for _, s := range saboteurs {
			require.Zero(t, s.disorders.Load(), "requests out of order, or twice")
		}
		for _, n := range []int64{d.answers, d.refusals, d.lost, d.notSent, d.unheard} {
			assert.Positive(t, n, "nothing was tried")
		}
		waitFor(t, "for all goroutines", func() bool { return runtime.NumGoroutine() <= routines })
		waitFor(t, "for all descriptors", func() bool { return openFiles() <= files })
	})
}

// restart stops one server after the other, and starts it again, until the run is
// over.
func (d *desync) restart(ps []*peer, done <-chan struct{}) (restarts int) {
	t := d.r.t
	overdue := time.After(2 * patience)
	if os.Getenv(envLong) == "1" {
		overdue = time.After(20 * patience)
	}
	for every := time.NewTicker(50 * time.Millisecond); ; restarts++ {
		select {
		case <-done:
			every.Stop()
			return restarts
		case <-overdue:
			require.FailNow(t, "the run does not end")
		case <-every.C:
			p := ps[restarts%len(ps)]
			p.stop()
			p.start(t)
			for _, p := range ps {
				p.forget(4) // those that went mute
			}
		}
	}
}

func (d *desync) report(took time.Duration, ss []*saboteur, ps []*peer, restarts int) {
	var writes, pieces, delays, dials int64
	deeds := make(map[verb]int64)
	for i, s := range ss {
		writes += s.writes.Load()
		pieces += s.pieces.Load()
		delays += s.delays.Load()
		dials += ps[i].dialled.Load()
		for k, end := range ends {
			deeds[end] += s.deeds[k].Load()
		}
	}
	d.r.t.Logf("%d requests in %v: %d answered (%d by an error), %d lost, %d not sent; %d questions cancelled, %d answers unheard; %d crossed",
		d.asked, took.Round(time.Millisecond), d.answers, d.refusals, d.lost, d.notSent, d.cancels, d.unheard, d.crossed)
	d.r.t.Logf("%d connections, ended by %v and %d restarts; %d answers of %d in pieces, %d delays, %d short writes seen",
		dials, deeds, restarts, pieces, writes, delays, d.shortWrites)
}

// openFiles is how many descriptors this process has, where it can tell.
func openFiles() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}

// warmUp opens what the runtime keeps open behind the first socket.
func warmUp(t *testing.T) {
	t.Helper()
	p := newPeer(t)
	p.stop()
	p.running.Wait()
}
