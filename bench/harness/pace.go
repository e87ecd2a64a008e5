package harness

import (
	"math/rand/v2"
	"time"

	"github.com/redlock-go/redlock/bench/pause"
)

// pace is when one worker of an uncontended cell begins its pairs, and how long it holds its locks.
// A nil pace has no pauses.
//
// Pairs that are asked for at a rate come by chance, however long answers take: the time to the next
// is distributed exponentially, and a pair counts from the instant at which it was due, also if
// its worker came late to it. So a stall costs each pair that was due meanwhile.
type pace struct {
	timer *pause.Timer
	held  time.Duration
	mean  time.Duration // between two pairs of the worker; 0: at once
	due   time.Time
}

func newPace(cfg Config) (*pace, error) {
	if !cfg.Paced() {
		return nil, nil
	}
	timer, err := pause.New()
	p := &pace{timer: timer, held: cfg.Hold, due: time.Now()}
	if cfg.Rate > 0 {
		p.mean = time.Second * time.Duration(cfg.Concurrency) / time.Duration(cfg.Rate)
	}
	return p, err
}

// next waits until the next pair is due, and returns since when it is.
func (p *pace) next(start time.Time) time.Time {
	if p == nil || p.mean == 0 {
		return start
	}
	p.due = p.due.Add(time.Duration(rand.ExpFloat64() * float64(p.mean)))
	_ = p.timer.Sleep(time.Until(p.due))
	return p.due
}

// hold keeps the lock for its time, and returns how long that was.
func (p *pace) hold() time.Duration {
	if p == nil || p.held == 0 {
		return 0
	}
	start := time.Now()
	_ = p.timer.Sleep(p.held)
	return time.Since(start)
}

func (p *pace) close() {
	if p != nil {
		_ = p.timer.Close()
	}
}
