package client

import (
	"sync"
	"sync/atomic"
	"time"
)

// housekeeper is the goroutine of a client for all work due by time. It has one timer and one wake-up for the tasks
// of all groups. It begins at its first ring, once it has its tasks, ends with the client, and runs no user code.
type housekeeper struct {
	tasks []func() time.Duration // each does what is due, does not wait, and returns the pause to its next turn
	given atomic.Bool            // tasks is complete
	begin sync.Once
	wake  chan struct{} // holds one
	done  chan struct{} // closed for the goroutine to end
	ended chan struct{}
}

func newHousekeeper() *housekeeper {
	return &housekeeper{wake: make(chan struct{}, 1), done: make(chan struct{}), ended: make(chan struct{})}
}

// give gives h all its tasks. They may have rung already.
func (h *housekeeper) give(tasks []func() time.Duration) {
	h.tasks = tasks
	h.given.Store(true)
	if len(h.wake) > 0 {
		h.ring()
	}
}

// ring has all tasks take their turn now. It does not block.
func (h *housekeeper) ring() {
	select {
	case h.wake <- struct{}{}:
	default: // they will
	}
	if h.given.Load() {
		h.begin.Do(func() { go h.run() })
	}
}

// close ends the goroutine. Afterwards it does not begin.
func (h *housekeeper) close() {
	h.begin.Do(func() { close(h.ended) })
	close(h.done)
	<-h.ended
}

func (h *housekeeper) run() {
	defer close(h.ended)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		pause := time.Hour
		for _, turn := range h.tasks {
			pause = min(pause, turn())
		}
		timer.Reset(pause)
		select {
		case <-timer.C:
		case <-h.wake:
		case <-h.done:
			return
		}
	}
}
