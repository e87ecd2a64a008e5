package workload

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// rateOf is how fast the clock of a client's host runs: every other one is slow by 0.8 %. Locks allow for 1 %.
func rateOf(client int) float64 { return 1 - 0.008*float64(client%2) }

// hostClock is what a host shows for the time since its start.
type hostClock struct {
	start time.Time
	rate  float64
}

func newHostClock(client int) hostClock { return hostClock{time.Now(), rateOf(client)} }

func (c hostClock) now() time.Duration {
	return time.Duration(float64(time.Since(c.start)) * c.rate)
}

// source is the host's clock for clients of this library.
func (c hostClock) source() clock.Source {
	return clock.Source{Monotonic: c.now, Ahead: func() (time.Duration, bool) { return 0, false }}
}
