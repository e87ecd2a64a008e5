// Package gate counts the work an end has to wait for: calls with a lock, callers in lines, batches owed by nodes. All
// of it is counted by the same two calls, and every end waits in the same way, so none forgets a part.
package gate

import "sync/atomic"

// Gate counts the work inside. It is safe for concurrent use.
type Gate struct {
	n     atomic.Int64
	shut  atomic.Bool
	empty chan struct{} // holds one token: nothing is left inside, since the gate was shut
}

// New returns an open gate with nothing inside.
func New() *Gate { return &Gate{empty: make(chan struct{}, 1)} }

// Admit is Enter, but after Shut it admits nothing: work that comes again and again would keep an end waiting.
func (g *Gate) Admit() bool {
	if g.shut.Load() {
		return false
	}
	g.Enter()
	return true
}

// Enter counts one more inside, until Leave. The same work may leave for a while and come back.
func (g *Gate) Enter() { g.n.Add(1) }

// Leave counts one less, and reports whether nothing is left.
func (g *Gate) Leave() (last bool) {
	last = g.n.Add(-1) == 0
	if last && g.shut.Load() {
		g.ring()
	}
	return last
}

// Inside is the number that have entered and not left.
func (g *Gate) Inside() int { return int(g.n.Load()) }

// Shut begins the end. Wait comes after it.
func (g *Gate) Shut() { g.shut.Store(true) }

// Wait waits until nothing is left inside, or late is closed. It is false if done was closed before.
func (g *Gate) Wait(late, done <-chan struct{}) bool {
	for g.n.Load() > 0 {
		select {
		case <-g.empty:
		case <-late:
			return true
		case <-done:
			return false
		}
	}
	g.ring() // for the next that waits
	return true
}

func (g *Gate) ring() {
	select {
	case g.empty <- struct{}{}:
	default:
	}
}
