package harness

import (
	"fmt"
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
	bytes       int64 // heap and stacks
	resident    int64
}

// readHoldings reads what a process that leaks has ever more of. Without exact
// the heap has what no collection has swept yet, so it rises and falls.
func (s *sample) readHoldings(exact bool) {
	var mem runtime.MemStats
	if exact {
		runtime.GC()
	}
	runtime.ReadMemStats(&mem)
	s.bytes = int64(mem.HeapAlloc + mem.StackInuse)
	s.resident = ResidentBytes()
	s.goroutines = runtime.NumGoroutine()
	s.descriptors = OpenDescriptors()
}

// OpenDescriptors is how many the process has; 0 where the system does not tell
// it like this.
func OpenDescriptors() int {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return 0
	}
	return len(entries) - 1 // without the one that has just been read
}

// ResidentBytes is the memory that the system has given the process; 0 where it
// does not tell it like this.
func ResidentBytes() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	var size, resident int64
	if err == nil {
		_, err = fmt.Sscan(string(text), &size, &resident)
	}
	if err != nil {
		return 0
	}
	return resident * int64(os.Getpagesize())
}
