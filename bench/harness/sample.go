package harness

import (
	"os"
	"runtime"
	"time"
)

// sample is a reading of everything that is measured by difference.
type sample struct {
	at          time.Time
	cpu         time.Duration
	mem         runtime.MemStats
	goroutines  int
	descriptors int
	bytes       int64
}

// readHoldings reads what a process that leaks has ever more of.
func (s *sample) readHoldings() {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	s.bytes = int64(mem.HeapInuse + mem.StackInuse)
	s.goroutines = runtime.NumGoroutine()
	s.descriptors = OpenDescriptors()
}

// inUse is the memory of the heap and of the stacks. The heap has what no
// collection has swept yet, so it rises and falls.
func (s *sample) inUse() int64 { return s.bytes }

// OpenDescriptors is how many the process has; 0 where the system does not tell
// it like this.
func OpenDescriptors() int {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return 0
	}
	return len(entries) - 1 // without the one that has just been read
}
