//go:build !unix

package harness

import "time"

// cpuTime is not known here; the table then shows a dash and JSON a zero.
func cpuTime() time.Duration { return 0 }
