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

// gate runs commands: as many at a time as are answered well within the time that they have, in the order of
// their arrival. So a burst is slow, as with one Redis, and does not fail; and a command in line is no goroutine.
//
// What is well within is what a command takes alone, and slack: the least that was measured, which rises
// slowly, since what answers may be farther by now. Commands that take longer make the room smaller.
type gate struct {
	jobs  chan job // for a goroutine that waits
	ended chan struct{}
	once  sync.Once

	mu     sync.Mutex
	room   float64 // for commands that run
	inside int
	line   []job
	least  time.Duration
	judged time.Time // when the room was made smaller, or least was raised
}

const (
	minRoom, startRoom, maxRoom = 128, 256, 512

	slack = 10 * time.Millisecond
)

func (g *gate) init() {
	g.jobs, g.ended = make(chan job), make(chan struct{})
	g.room, g.least = startRoom, time.Hour
}

// end ends the goroutines that wait. There are no more jobs.
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

// leave notes how long a command took to run, and lets the first in line in.
func (g *gate) leave(took time.Duration) {
	g.mu.Lock()
	g.inside--
	g.least = min(g.least, took)
	switch now := time.Now(); {
	case took > g.least+slack:
		if now.Sub(g.judged) > took { // what ran then has ended
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

// run has a job run once it may. It does not block.
func (g *gate) run(j job) {
	if g.enter(j) {
		g.start(j)
	}
}

// start has a job run, by a goroutine that waits or a new one: a stack that has grown to what a command
// needs would cost a new goroutine several copies.
func (g *gate) start(j job) {
	select {
	case g.jobs <- j:
	default:
		go g.serve(j)
	}
}

// runnerIdle is how long a goroutine waits for another job.
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
