package cluster

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/clock"
)

// Machine is what clients run on that are made until the test ends. It can be suspended.
type Machine struct{ ahead atomic.Int64 }

// NewMachine is called before the clients are made, and in one test at a time.
func NewMachine(t testing.TB) *Machine {
	m := new(Machine)
	t.Cleanup(clock.Play(m.clocks))
	return m
}

func (m *Machine) clocks() clock.Source {
	s := clock.OS()
	started := time.Now()
	s.Boottime = func() (time.Duration, bool) {
		return time.Since(started) + time.Duration(m.ahead.Load()), true
	}
	both := s.Both
	s.Both = func() (monotonic, wall time.Duration) {
		monotonic, wall = both()
		return monotonic, wall + time.Duration(m.ahead.Load())
	}
	return s
}

// Suspend has it as if the machine had been suspended for d until now.
func (m *Machine) Suspend(d time.Duration) { m.ahead.Add(int64(d)) }
