package clock

import (
	"sync/atomic"
	"time"
)

// epoch is what readings of the system clock count from. It carries a
// monotonic reading, which is all that [time.Since] looks at when it has one.
var epoch = time.Now()

// System returns the clock of the operating system, counted from the start of
// the process. All values it returns are the same clock.
//
// It runs at the rate of the operating system's monotonic clock. On Linux that one
// (CLOCK_MONOTONIC) stands still while the machine is suspended; the nodes' clocks run
// on, so a holder would believe in its lock for longer than the nodes do. [Sync] makes
// up for it. No client can know of a pause by a hypervisor that stops all clocks of its
// guest.
func System() Clock { return system{} }

// system has no fields, so that turning it into a Clock allocates nothing.
type system struct{}

func (system) Now() time.Duration { return time.Since(epoch) + time.Duration(suspended.Load()) }

// suspended is how long the machine has been suspended since the start of the process,
// as far as Sync has found out.
var suspended atomic.Int64

// leastSuspend is what Sync takes for a suspended machine. Less is the error of reading
// two clocks one after the other.
const leastSuspend = time.Millisecond

// Sync adds to the system's clock what the machine was suspended for since the last
// Sync, where the operating system tells (Linux: CLOCK_BOOTTIME). It costs a system
// call. The clock does not go back by it.
func Sync() {
	boot, ok := boottime()
	if !ok {
		return
	}
	// The monotonic clock is read second: what comes between the two readings makes the
	// difference smaller, and is not taken for a suspended machine.
	now, before := boot-bootEpoch-time.Since(epoch), suspended.Load()
	if now > time.Duration(before)+leastSuspend {
		suspended.CompareAndSwap(before, int64(now)) // or another Sync has done so
	}
}

// boottime reads a clock that goes on while the machine is suspended; false where there
// is none.
func boottime() (time.Duration, bool) {
	boot, ok := readBoottime()
	if ahead := fakeAhead.Load(); ahead != nil {
		boot, ok = boot+time.Duration(*ahead), true
	}
	return boot, ok
}

// bootEpoch is what boottime read at the epoch.
var bootEpoch = func() time.Duration {
	boot, _ := readBoottime()
	return boot - time.Since(epoch)
}()

var fakeAhead atomic.Pointer[time.Duration]

// FakeSuspend has the next Sync find that the machine was suspended for d, for tests. It
// returns what takes that back, and with it what Sync has added to the clock.
func FakeSuspend(d time.Duration) (restore func()) {
	before := suspended.Load()
	fakeAhead.Store(&d)
	return func() {
		fakeAhead.Store(nil)
		suspended.Store(before)
	}
}
