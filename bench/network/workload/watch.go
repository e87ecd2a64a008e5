package workload

import (
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/bench/network/history"
)

// lineCounter is a log of which the lines are counted.
type lineCounter struct {
	file  *os.File
	lines atomic.Int64
}

func newLineCounter(path string) (*lineCounter, error) {
	f, err := os.Create(path)
	return &lineCounter{file: f}, err
}

func (l *lineCounter) Write(b []byte) (int, error) {
	l.lines.Add(1)
	return l.file.Write(b)
}

func (l *lineCounter) count() int { return int(l.lines.Load()) }

// gauge notes the state of the process each second.
func (p *process) gauge(over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		case <-time.After(time.Second):
		}
		heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(heap)
		g := history.Gauge{Client: p.Client, At: history.Now(), Goroutines: runtime.NumGoroutine(), Heap: int64(heap[0].Value.Uint64())}
		if text, err := os.ReadFile("/proc/self/statm"); err == nil {
			pages, _ := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
			g.Resident = pages * int64(os.Getpagesize())
		}
		if files, err := os.ReadDir("/proc/self/fd"); err == nil {
			g.Files = len(files)
		}
		u, done := p.borrow()
		if u.client != nil {
			s := u.client.Stats()
			g.Held, g.InLine, g.InFlight = s.Held, s.InLine, s.InFlight
		}
		done()
		p.file.Add(g)
	}
}

// The least pause that is noted, and how often it is looked for.
const (
	leastPause = 20 * time.Millisecond
	beat       = 10 * time.Millisecond
)

// pauses notes when this process did not run: the machine has few processors, and faults stop processes.
func (p *process) pauses(over <-chan struct{}) {
	Pauses(over, func(from, to history.Time) {
		p.file.Add(history.Pause{Client: p.Client, From: from, To: to, Waited: to.Sub(from)})
	}, p.threads())
}

// Pauses calls note for each pause of this process until over is closed, and more about ten times a second.
func Pauses(over <-chan struct{}, note func(from, to history.Time), more func()) {
	last, looked := history.Now(), history.Time(0)
	for {
		select {
		case <-over:
			return
		case <-time.After(beat):
		}
		now := history.Now()
		if from := last.Add(beat); now.Sub(from) > leastPause {
			note(from, now)
		}
		if now.Sub(looked) > 100*time.Millisecond && more != nil {
			more()
			looked = now
		}
		last = now
	}
}

// threads notes how long threads were ready and had no processor: one of them may have what all wait for.
func (p *process) threads() func() {
	waited, looked := map[string]time.Duration{}, history.Now()
	return func() {
		now := history.Now()
		all, _ := os.ReadDir("/proc/self/task")
		for _, thread := range all {
			text, err := os.ReadFile("/proc/self/task/" + thread.Name() + "/schedstat")
			fields := strings.Fields(string(text))
			if err != nil || len(fields) < 2 {
				continue
			}
			n, _ := strconv.ParseInt(fields[1], 10, 64)
			d := time.Duration(n) - waited[thread.Name()]
			if waited[thread.Name()] > 0 && d > leastPause {
				p.file.Add(history.Pause{Client: p.Client, From: looked.Add(-d), To: now, Waited: d, Thread: true})
			}
			waited[thread.Name()] = time.Duration(n)
		}
		looked = now
	}
}
