//go:build !unix

package harness

import "time"

// CPUTime is not known here; the table then shows a dash and JSON a zero.
func CPUTime() time.Duration { return 0 }
