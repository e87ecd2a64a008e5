package harness

import (
	"os"
	"runtime"
	"time"
)

// sample is a reading of everything that is measured by difference.
type sample struct {
	at   time.Time
	cpu  time.Duration
	idle time.Duration // of all processors; 0: not known
	mem  runtime.MemStats
	held Holdings
	used []float64 // CPU of the servers, µs
}

// Holdings are resources that a process may leak.
type Holdings struct {
	Bytes       int64 // heap and stacks
	Goroutines  int
	Descriptors int
}

// ReadHoldings reads them, after a garbage collection if exact.
func ReadHoldings(exact bool) Holdings {
	if exact {
		runtime.GC()
		runtime.GC() // frees the objects that pools let go of in the first one
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	return Holdings{int64(mem.HeapAlloc + mem.StackInuse), runtime.NumGoroutine(), openDescriptors()}
}

// Since is the growth since earlier holdings.
func (h Holdings) Since(before Holdings) Holdings {
	return Holdings{h.Bytes - before.Bytes, h.Goroutines - before.Goroutines, h.Descriptors - before.Descriptors}
}

// openDescriptors is how many the process has; 0 on systems without /dev/fd.
func openDescriptors() int {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return 0
	}
	return len(entries) - 1 // without the one that has just been read
}
