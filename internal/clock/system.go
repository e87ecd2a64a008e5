package clock

import "time"

// epoch is what readings of the system clock count from. It carries a
// monotonic reading, which is all that [time.Since] looks at when it has one.
var epoch = time.Now()

// System returns the clock of the operating system, counted from the start of
// the process. All values it returns are the same clock.
//
// It runs at the rate of the operating system's monotonic clock, and has its
// limits: on Linux (CLOCK_MONOTONIC) it stands still while the machine is
// suspended, and on every system while a hypervisor has it paused. The nodes'
// clocks run on meanwhile, so a holder that was suspended believes in its lock
// for longer than the nodes do.
func System() Clock { return system{} }

// system has no fields, so that turning it into a Clock allocates nothing.
type system struct{}

func (system) Now() time.Duration { return time.Since(epoch) }
