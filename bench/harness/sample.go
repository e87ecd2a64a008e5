package harness

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

// sample is a reading of everything that is measured by difference.
type sample struct {
	at   time.Time
	cpu  time.Duration
	mem  runtime.MemStats
	held Holdings
}

// Holdings are the resources of which a process that leaks has ever more.
type Holdings struct {
	Bytes       int64 // heap and stacks
	Resident    int64 // memory that the system has given the process
	Goroutines  int
	Descriptors int
}

// ReadHoldings reads them, after a collection if exact: otherwise the heap has
// garbage, so it rises and falls.
func ReadHoldings(exact bool) Holdings {
	if exact {
		runtime.GC()
		runtime.GC() // frees the objects that pools let go of in the first one
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	return Holdings{int64(mem.HeapAlloc + mem.StackInuse), residentBytes(), runtime.NumGoroutine(), openDescriptors()}
}

// Since is the difference to earlier holdings.
func (h Holdings) Since(before Holdings) Holdings {
	return Holdings{h.Bytes - before.Bytes, h.Resident - before.Resident, h.Goroutines - before.Goroutines, h.Descriptors - before.Descriptors}
}

// openDescriptors is how many the process has; 0 on systems without /dev/fd.
func openDescriptors() int {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return 0
	}
	return len(entries) - 1 // without the one that has just been read
}

// residentBytes is 0 on systems without /proc.
func residentBytes() int64 {
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
