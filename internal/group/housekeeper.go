package group

import (
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/clock"
)

// housekeeper is the goroutine of a client that does what time brings. It has one timer and
// one wake-up for all tasks. It begins when it is first rung, ends with the client, and runs
// no user code.
type housekeeper struct {
	clock *clock.System
	tasks []func() time.Duration // each does what is due, does not wait, and returns the pause to its next turn
	begin sync.Once
	wake  chan struct{} // holds one
	done  chan struct{} // closed when the goroutine is to end
	ended chan struct{}
}

func newHousekeeper(c *clock.System) *housekeeper {
	return &housekeeper{clock: c, wake: make(chan struct{}, 1), done: make(chan struct{}), ended: make(chan struct{})}
}

// ring has all tasks take their turn now. It does not block.
func (h *housekeeper) ring() {
	h.begin.Do(func() { go h.run() })
	select {
	case h.wake <- struct{}{}:
	default: // they will
	}
}

// close ends the goroutine. It does not begin after that.
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
		h.clock.Sync() // time for which the machine was suspended counts
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
