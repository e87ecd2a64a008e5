package group

import (
	"sync/atomic"

	"github.com/redlock-go/redlock/internal/client/engine"
)

// Underway counts what may yet send releases to an engine that has nothing under way: attempts on several keys, whose
// callers wait for another group, and those of callers with hooks, who are about to run; from before nodes are asked
// until what they have granted has an owner, or is given back. The end of a client waits for them, then gives back the
// locks of callers in hooks, waits for those who do so themselves at that moment, and only then ends a group.
type Underway struct {
	n    atomic.Int64
	none chan struct{} // holds one: none was left
}

// NewUnderway returns a count of none.
func NewUnderway() *Underway { return &Underway{none: make(chan struct{}, 1)} }

func (u *Underway) begin() { u.n.Add(1) }

func (u *Underway) end() {
	if u.n.Add(-1) == 0 {
		select {
		case u.none <- struct{}{}:
		default:
		}
	}
}

// Wait waits until there is none, or until late is closed. Attempts that begin later are refused.
func (u *Underway) Wait(late <-chan struct{}) {
	for u.n.Load() > 0 && !engine.IsClosed(late) {
		select {
		case <-u.none:
		case <-late:
		}
	}
}
