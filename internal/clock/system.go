package clock

import (
	"sync/atomic"
	"time"
)

// System is the clock of the operating system, as one client reads it.
//
// It runs at the rate of the operating system's monotonic clock. On Linux that one
// (CLOCK_MONOTONIC) stands still while the machine is suspended; the nodes' clocks run
// on, so a holder would believe in its lock for longer than the nodes do. Sync makes
// up for it. No client can know of a pause by a hypervisor that stops all clocks of its
// guest.
type System struct {
	source    Source
	epoch     time.Duration // what Monotonic reads where Now returns 0
	awake     time.Duration // by how much Boottime was ahead of Monotonic at first
	suspended atomic.Int64  // for how long the machine was since, as far as Sync has found out
	wall      atomic.Int64  // by how much the time of day was ahead of Monotonic when Current last looked
}

// Source is the clocks of an operating system.
type Source struct {
	Monotonic func() time.Duration         // may stand still while the machine is suspended
	Boottime  func() (time.Duration, bool) // does not; false where there is no such clock
	// Both is Monotonic and the time of day, at the cost of one of them. Nil: there is none.
	Both func() (monotonic, wall time.Duration)
}

// OS is the clocks of this machine.
func OS() Source {
	start := time.Now() // has a monotonic reading, which is all that time.Since looks at
	return Source{
		Monotonic: func() time.Duration { return time.Since(start) }, Boottime: readBoottime,
		Both: func() (monotonic, wall time.Duration) {
			now := time.Now()
			return now.Sub(start), time.Duration(now.UnixNano())
		},
	}
}

// beforeFirst is what the first reading is at least: 0 stands for no time in many places.
const beforeFirst = time.Second

// New returns a clock that counts from about now. Its readings are above zero.
func New() *System {
	if source := played.Load(); source != nil {
		return NewOn((*source)())
	}
	return NewOn(OS())
}

// NewOn is New with the clocks of another machine.
func NewOn(source Source) *System {
	s := &System{source: source, epoch: source.Monotonic() - beforeFirst}
	s.awake, _ = s.ahead()
	return s
}

// Now implements Clock.
func (s *System) Now() time.Duration {
	return s.source.Monotonic() - s.epoch + time.Duration(s.suspended.Load())
}

// leastSuspend is what Sync takes for a suspended machine. Less is the error of reading
// two clocks one after the other.
const leastSuspend = time.Millisecond

// Sync adds to the clock what the machine was suspended for since the last Sync, where
// the operating system tells (Linux: CLOCK_BOOTTIME). It costs a system call. The clock
// does not go back by it.
func (s *System) Sync() {
	ahead, ok := s.ahead()
	if !ok {
		return
	}
	now, before := ahead-s.awake, s.suspended.Load()
	if now > time.Duration(before)+leastSuspend {
		s.suspended.CompareAndSwap(before, int64(now)) // or another Sync has done so
	}
}

// Current is Now behind a Sync, for the price of Now: for the last look at the clock before a
// lock is returned. Boottime is read only if the time of day has moved against Monotonic
// since the last look, as it does when a machine wakes, or is set: otherwise it would show
// nothing. What sets the time of day back at the same moment, by the length of the
// suspension to a millisecond, hides it.
func (s *System) Current() time.Duration {
	if s.source.Both == nil {
		s.Sync()
		return s.Now()
	}
	now, wall := s.source.Both()
	offset, before := int64(wall-now), s.wall.Load()
	if max(offset-before, before-offset) > int64(leastSuspend) {
		s.Sync()
		s.wall.Store(offset)
	}
	return now - s.epoch + time.Duration(s.suspended.Load())
}

// ahead is by how much Boottime is ahead of Monotonic. The latter is read second: what
// comes between the two readings makes the difference smaller, and is not taken for a
// suspended machine.
func (s *System) ahead() (time.Duration, bool) {
	boot, ok := s.source.Boottime()
	return boot - s.source.Monotonic(), ok
}

// played is where New finds the machine of the next client in tests, or nil.
var played atomic.Pointer[func() Source]

// Play has New call machine for the clocks of each client that is made from now on, until
// it is undone. It is for tests, which suspend a machine that way; a program cannot reach it.
func Play(machine func() Source) (undo func()) {
	played.Store(&machine)
	return func() { played.Store(nil) }
}
