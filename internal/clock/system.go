package clock

import (
	"sync/atomic"
	"time"
)

// System is the clock of the operating system, as one client reads it.
//
// It counts the time for which the machine was suspended, as the clocks of the nodes do: on Linux
// CLOCK_MONOTONIC, which Go reads, stands still meanwhile, and a holder would count on its lock
// for longer than the nodes keep it. No client can notice a hypervisor that stops all clocks of its
// guest.
type System struct {
	source    Source
	epoch     time.Duration // what Monotonic reads where Now returns 0
	awake     time.Duration // how far Boottime was ahead of Monotonic at first
	suspended atomic.Int64  // since then, as far as was found
	wall      atomic.Int64  // how far the time of day was ahead of Monotonic at the last look at Boottime
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
	start := time.Now() // has a monotonic reading, which time.Since uses
	return Source{
		Monotonic: func() time.Duration { return time.Since(start) }, Boottime: readBoottime,
		Both: func() (monotonic, wall time.Duration) {
			now := time.Now()
			return now.Sub(start), time.Duration(now.UnixNano())
		},
	}
}

// beforeFirst is the least first reading: in many places 0 stands for no time.
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

// Now implements Clock, at the cost of time.Now. It reads Boottime, by a system call, only where the time
// of day has moved against Monotonic: when a machine resumes, or when the time is set. A suspension
// is hidden only if the time of day is set back in the same moment by its length, to a millisecond.
func (s *System) Now() time.Duration {
	if s.source.Both == nil {
		s.look()
		return s.source.Monotonic() - s.epoch + time.Duration(s.suspended.Load())
	}
	now, wall := s.source.Both()
	offset, before := int64(wall-now), s.wall.Load()
	if max(offset-before, before-offset) > int64(leastSuspend) {
		s.look()
		s.wall.Store(offset)
	}
	return now - s.epoch + time.Duration(s.suspended.Load())
}

// leastSuspend is the least difference that means a suspended machine. Less is the error of
// reading two clocks one after the other.
const leastSuspend = time.Millisecond

// look adds the time for which the machine was suspended since the last look, if the operating system
// has a clock for that (Linux: CLOCK_BOOTTIME). It never sets the clock back.
func (s *System) look() {
	ahead, ok := s.ahead()
	if !ok {
		return
	}
	now, before := ahead-s.awake, s.suspended.Load()
	if now > time.Duration(before)+leastSuspend {
		s.suspended.CompareAndSwap(before, int64(now)) // or another look has done so
	}
}

// ahead is how far Boottime is ahead of Monotonic. The latter is read second: a delay between
// the two readings makes the difference smaller, and is not taken for a suspension.
func (s *System) ahead() (time.Duration, bool) {
	boot, ok := s.source.Boottime()
	return boot - s.source.Monotonic(), ok
}

// played is the machine of the next client in tests, or nil.
var played atomic.Pointer[func() Source]

// Play makes New call machine for the clocks of each client from now on, until it is undone. It
// is for tests, which suspend a machine that way; programs cannot reach it.
func Play(machine func() Source) (undo func()) {
	played.Store(&machine)
	return func() { played.Store(nil) }
}
