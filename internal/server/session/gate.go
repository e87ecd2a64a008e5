package session

import (
	"sync"
	"time"
)

// job is a command to be run.
type job struct {
	session *session
	request *request
}

// gate runs commands: as many at a time as are answered well within their time, in the order of arrival. So a burst is
// slow, as with one Redis, and does not fail. A command in line is no goroutine.
//
// Well within means the time of a command alone, and slack. The former is the least measured time.
// It rises slowly, since the nodes may be farther by now. Slower commands make the room smaller.
type gate struct {
	jobs  chan job // for a waiting goroutine
	ended chan struct{}
	once  sync.Once

	mu     sync.Mutex
	room   float64 // for running commands
	inside int
	line   []job
	least  time.Duration
	judged time.Time // when the room was made smaller, and least was raised
}

const (
	minRoom, startRoom, maxRoom = 128, 256, 512

	slack = 10 * time.Millisecond
)

func (g *gate) init() {
	g.jobs, g.ended = make(chan job), make(chan struct{})
	g.room, g.least = startRoom, time.Hour
}

// end ends the waiting goroutines. There are no more jobs.
func (g *gate) end() { g.once.Do(func() { close(g.ended) }) }

// enter reports whether a command may run. Otherwise it is in line.
func (g *gate) enter(j job) bool {
	if j.request.plan.Waits {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if float64(g.inside) >= g.room {
		g.line = append(g.line, j)
		return false
	}
	g.inside++
	return true
}

// leave notes how long a command took to run, and lets the first in line in. A failed command may
// have asked no node: then it is no measure of their time.
func (g *gate) leave(took time.Duration, hasFailed bool) {
	g.mu.Lock()
	g.inside--
	if !hasFailed {
		g.least = min(g.least, took)
	}
	switch now := time.Now(); {
	case took > g.least+slack:
		if now.Sub(g.judged) > took { // commands running then have ended
			g.room, g.judged = max(g.room*0.7, minRoom), now
			g.least += g.least / 64
		}
	case len(g.line) > 0:
		g.room = min(g.room+4/g.room, maxRoom)
	}
	for len(g.line) > 0 && float64(g.inside) < g.room {
		j := g.line[0]
		g.line[0] = job{}
		g.line = g.line[1:]
		g.inside++
		g.mu.Unlock()
		g.start(j)
		g.mu.Lock()
	}
	g.mu.Unlock()
}

// run makes a job run once it may. It does not block.
func (g *gate) run(j job) {
	if g.enter(j) {
		g.start(j)
	}
}

// start has a job run, by a waiting goroutine or a new one: growing its stack to a command's need
// would cost a new goroutine several copies.
func (g *gate) start(j job) {
	select {
	case g.jobs <- j:
	default:
		go g.serve(j)
	}
}

// runnerIdle is the time for which a goroutine waits for another job.
const runnerIdle = 100 * time.Millisecond

func (g *gate) serve(j job) {
	idle := time.NewTimer(runnerIdle)
	defer idle.Stop()
	for {
		j.session.run(j.request)
		j = job{}
		idle.Reset(runnerIdle)
		select {
		case j = <-g.jobs:
		case <-idle.C:
			return
		case <-g.ended:
			return
		}
	}
}
