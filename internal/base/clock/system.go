package clock

import (
	"sync/atomic"
	"time"
)

// System is the clock of the operating system, as one client reads it.
//
// It counts the time of suspensions, as the clocks of the nodes do. On Linux, Go's CLOCK_MONOTONIC
// stands still meanwhile, and a holder would count on its lock for longer than the nodes keep it.
// No client can notice a hypervisor stopping all clocks of its guest.
type System struct {
	source    Source
	epoch     time.Duration // Monotonic at reading 0 of Now
	before    time.Duration // the first result of Ahead
	suspended atomic.Int64  // since then, as far as found
	looked    atomic.Int64  // Monotonic before the last look at Ahead
}

// Source has the clocks of an operating system.
type Source struct {
	Monotonic func() time.Duration // may stand still while the machine is suspended
	// Ahead is the lead over Monotonic of a clock that never stands still. ok is false without such a clock.
	Ahead func() (time.Duration, bool)
}

// OS returns the clocks of this machine.
func OS() Source {
	start := time.Now() // has a monotonic reading for time.Since
	return Source{
		Monotonic: func() time.Duration { return time.Since(start) },
		Ahead: func() (time.Duration, bool) {
			boot, ok := readBoottime()
			return boot - time.Since(start), ok // a delay in between is not taken for a suspension: it is negative
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
	s.before, _ = source.Ahead()
	return s
}

// Now implements Clock. It costs about as much as time.Since: Ahead makes a system call, and is
// asked only if the last look at it is older than leastAwake. Before, there can be nothing new to
// see.
func (s *System) Now() Instant {
	now := s.source.Monotonic()
	if now-time.Duration(s.looked.Load()) >= leastAwake {
		s.look(now)
	}
	return Instant(now - s.epoch + time.Duration(s.suspended.Load()))
}

const (
	// leastAwake is the least run of Monotonic between the suspension of a machine and its
	// resumption: freezing and thawing processes and devices takes milliseconds.
	leastAwake = 200 * time.Microsecond
	// leastSuspend is the least difference taken for a suspension. Less is the error of reading two
	// clocks one after the other.
	leastSuspend = time.Millisecond
)

// look adds the time of suspensions since the last look, if the operating system has a clock for it
// (Linux: CLOCK_BOOTTIME). It never sets the clock back.
func (s *System) look(now time.Duration) {
	ahead, ok := s.source.Ahead()
	if slept, before := ahead-s.before, s.suspended.Load(); ok && slept > time.Duration(before)+leastSuspend {
		s.suspended.CompareAndSwap(before, int64(slept)) // or another look has done so
	}
	s.looked.Store(int64(now)) // last: a reading without a look sees what was found
}

// played is the machine of the next client in tests, or nil.
var played atomic.Pointer[func() Source]

// Play makes New call machine for the clocks of each client from now on, until it is undone. It is
// for tests of suspended machines; programs cannot reach it.
func Play(machine func() Source) (undo func()) {
	played.Store(&machine)
	return func() { played.Store(nil) }
}
