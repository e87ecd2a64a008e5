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

// runners is goroutines that run commands. One that has run a command waits for another for a
// moment: its stack has grown to what a command needs, which costs a new goroutine several copies.
type runners struct {
	jobs  chan job
	ended chan struct{}
	once  *sync.Once
}

func newRunners() runners { return runners{make(chan job), make(chan struct{}), new(sync.Once)} }

// end ends the goroutines that wait. There are no more jobs.
func (r runners) end() { r.once.Do(func() { close(r.ended) }) }

// run has a job run, by a goroutine that waits or a new one. It does not block.
func (r runners) run(j job) {
	select {
	case r.jobs <- j:
	default:
		go r.serve(j)
	}
}

// runnerIdle is how long a goroutine waits for another job.
const runnerIdle = 100 * time.Millisecond

func (r runners) serve(j job) {
	idle := time.NewTimer(runnerIdle)
	defer idle.Stop()
	for {
		j.session.run(j.request)
		j = job{}
		idle.Reset(runnerIdle)
		select {
		case j = <-r.jobs:
		case <-idle.C:
			return
		case <-r.ended:
			return
		}
	}
}
