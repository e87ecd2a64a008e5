package workload

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock/bench/network/history"
)

// The least pause that is noted, and how often it is looked for.
const (
	leastPause = 20 * time.Millisecond
	beat       = 10 * time.Millisecond
)

// Pauses notes when this process, that of a client or 0, did not run, until over is closed: the machine has few processors,
// and faults stop processes. It calls more about ten times a second.
func Pauses(over <-chan struct{}, file *history.File, client int, more func()) {
	last, looked := history.Now(), history.Time(0)
	history.Every(beat, over, func() {
		now := history.Now()
		if from := last.Add(beat); now.Sub(from) > leastPause {
			file.Add(history.Record{Pause: &history.Pause{Client: client, From: from, To: now, Waited: now.Sub(from)}})
		}
		if now.Sub(looked) > 100*time.Millisecond && more != nil {
			more()
			looked = now
		}
		last = now
	})
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
				p.file.Add(history.Record{Pause: &history.Pause{Client: p.Client, From: looked.Add(-d), To: now, Waited: d, Thread: true}})
			}
			waited[thread.Name()] = time.Duration(n)
		}
		looked = now
	}
}
