package workload

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/bench/network/history"
)

// worker is a goroutine that does a task again and again.
type worker struct {
	*process
	name, library string
	rng           *rand.Rand
	n             int
	client        *redlock.Client // of this turn; nil of another library
	locks         library         // likewise
	step          int             // likewise
}

// work begins a worker. What it asks for follows from the seed and its name. With locks it is a client of these alone.
func (p *process) work(name string, turn func(*worker) time.Duration, locks library) {
	h := fnv.New64()
	fmt.Fprint(h, p.Client, name)
	w := &worker{process: p, name: fmt.Sprintf("%d/%s", p.Client, name), library: p.Library, rng: rand.New(rand.NewPCG(p.Seed, h.Sum64()))}
	if locks != nil {
		w.library = history.Front
	}
	p.workers.Go(func() {
		for !p.isOver() {
			c, done := p.borrow()
			w.client, w.locks, w.step = c.client, c.locks, c.step
			if locks != nil {
				w.client, w.locks = nil, locks
			}
			rest := 10*time.Millisecond + turn(w)
			done()
			if p.isCalm() {
				rest += 20 * time.Millisecond
			}
			time.Sleep(rest)
		}
	})
}

func (w *worker) upTo(d time.Duration) time.Duration {
	return time.Duration(w.rng.Int64N(int64(d) + 1))
}

// bounded is at most what the masters grant.
func (w *worker) bounded(ttl time.Duration) time.Duration {
	if w.MaxTTL > 0 {
		return min(ttl, w.MaxTTL)
	}
	return ttl
}

func (w *worker) ttl() time.Duration { return w.bounded(time.Second + w.upTo(2*time.Second)) }

// section is how long a worker works under a lock: mostly shortly, rarely beyond its validity. While it is calm all sections
// are short, so that waits can be judged.
func (w *worker) section(ttl time.Duration) time.Duration {
	switch n := w.rng.IntN(100); {
	case w.isCalm():
		return w.upTo(15 * time.Millisecond)
	case n < 70:
		return w.upTo(30 * time.Millisecond)
	case n < 96:
		return 30*time.Millisecond + w.upTo(170*time.Millisecond)
	}
	return ttl/2 + w.upTo(ttl*3/4)
}

// patience is how long a call may wait.
func (w *worker) patience() time.Duration {
	if w.isCalm() {
		return 8 * time.Second
	}
	return 2*time.Second + w.upTo(4*time.Second)
}

// start begins all workers of the process.
func (p *process) start() {
	begin := func(tasks map[string]task) {
		for name, t := range tasks {
			p.work(name, func(w *worker) time.Duration { return w.turn(t) }, nil)
		}
	}
	begin(common)
	if p.Front != "" {
		p.work("front", func(w *worker) time.Duration { return w.turn(hot) }, newByHand([]string{p.Front}, history.Front, p.clock))
	}
	if !p.Compared && p.Library == history.Ours {
		begin(more)
		p.work("operate", operate, nil)
	}
}
