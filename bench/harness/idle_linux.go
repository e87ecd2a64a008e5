package harness

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// jiffy is the unit of /proc/stat, which no system that Go supports has otherwise.
const jiffy = 10 * time.Millisecond

// idleTime is for how long all processors together have had nothing to do. The kernel counts that exactly, and the
// rest by samples.
func idleTime() (idle time.Duration) {
	stat, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(stat), "\n")
	fields := strings.Fields(line)
	for i := 4; i <= 5 && i < len(fields); i++ { // idle, and waiting for a disk
		n, _ := strconv.ParseInt(fields[i], 10, 64)
		idle += time.Duration(n) * jiffy
	}
	return idle
}
