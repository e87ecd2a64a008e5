package testkit

import (
	"os"
	"runtime"
	"strings"
)

// Goroutines returns the stacks of the goroutines that run code of the client.
func Goroutines() string {
	buf := make([]byte, 1<<20)
	var found []string
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, "redlock/conn.") || strings.Contains(stack, "redlock/internal/engine.") {
			found = append(found, stack)
		}
	}
	return strings.Join(found, "\n\n")
}

// Descriptors is how many files this process has open, or 0 where the system
// does not tell.
func Descriptors() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(list)
}
