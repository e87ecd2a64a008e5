package history

import (
	"time"

	"golang.org/x/sys/unix"
)

// Time is CLOCK_BOOTTIME in nanoseconds: one clock for all processes of the machine.
type Time int64

// Now reads the clock.
func Now() Time {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return Time(t.Nano())
}

// Add is the time d later.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Sub is how much later t is.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Sleep sleeps until t.
func Sleep(t Time) { time.Sleep(t.Sub(Now())) }

// Every calls do after each pause, until over is closed.
func Every(pause time.Duration, over <-chan struct{}, do func()) {
	for {
		select {
		case <-over:
			return
		case <-time.After(pause):
			do()
		}
	}
}
