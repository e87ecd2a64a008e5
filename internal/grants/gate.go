package grants

import (
	"context"
	"slices"
	"sync"
	"time"
)

// gate lets as many operations in as the nodes answer well within their time, in the order of their
// arrival, and before their clocks start. So a burst is slow, as with one Redis, and does not fail.
//
// What is well within is what an operation takes alone, and slack: the least that was measured, which rises
// slowly, since the nodes may be farther by now. Operations that take longer make the room smaller.
type gate struct {
	mu     sync.Mutex
	room   float64 // for operations that are in
	inside int
	line   []chan struct{}
	least  time.Duration
	judged time.Time // when the room was made smaller, or least was raised
}

const (
	minRoom, startRoom, maxRoom = 32, 256, 512

	slack = 10 * time.Millisecond
)

// enter waits for room. leave is to be called when the nodes have answered.
func (g *gate) enter(ctx context.Context) (leave func(), err error) {
	g.mu.Lock()
	if g.room == 0 {
		g.room, g.least = startRoom, time.Hour
	}
	if len(g.line) > 0 || float64(g.inside) >= g.room {
		turn := make(chan struct{})
		g.line = append(g.line, turn)
		g.mu.Unlock()
		select {
		case <-turn:
		case <-ctx.Done():
			g.giveUp(turn)
			return nil, ctx.Err()
		}
	} else {
		g.inside++
		g.mu.Unlock()
	}
	began := time.Now()
	return func() { g.leave(time.Since(began)) }, nil
}

// giveUp takes an operation that ends out of the line, or its turn on.
func (g *gate) giveUp(turn chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.line, turn); i >= 0 {
		g.line = slices.Delete(g.line, i, i+1)
		return
	}
	g.inside--
	g.admit()
}

func (g *gate) leave(took time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.least = min(g.least, took)
	switch now := time.Now(); {
	case took > g.least+slack:
		if now.Sub(g.judged) > took { // what was in then has answered
			g.room, g.judged = max(g.room*0.7, minRoom), now
			g.least += g.least / 64
		}
	case len(g.line) > 0:
		g.room = min(g.room+4/g.room, maxRoom)
	}
	g.admit()
}

// admit lets the first in line in. g.mu is held.
func (g *gate) admit() {
	n := 0
	for ; n < len(g.line) && float64(g.inside) < g.room; n++ {
		g.inside++
		close(g.line[n])
		g.line[n] = nil
	}
	if g.line = g.line[n:]; len(g.line) == 0 {
		g.line = nil
	}
}
