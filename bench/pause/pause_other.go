//go:build !linux

// Package pause sleeps more exactly than time.Sleep, on Linux.
package pause

import "time"

// Timer is time.Sleep.
type Timer struct{}

// New makes a timer.
func New() (*Timer, error) { return new(Timer), nil }

// Sleep sleeps for d.
func (*Timer) Sleep(d time.Duration) error {
	time.Sleep(d)
	return nil
}

// Close does nothing.
func (*Timer) Close() error { return nil }
