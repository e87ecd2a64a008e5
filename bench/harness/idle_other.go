//go:build !linux

package harness

import "time"

// idleTime is not known here, and so it is not known either what other processes used.
func idleTime() time.Duration { return 0 }
