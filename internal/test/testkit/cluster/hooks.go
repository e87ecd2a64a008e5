package cluster

import (
	"context"
	"fmt"
	"sync"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// HookRecorder records the calls of hooks, in numbers and in full.
type HookRecorder struct {
	Mu       sync.Mutex
	Kinds    [4]Results
	Maybe    uint64
	Votes    [16][3]uint64
	Attempts []redlock.Attempt
	Failed   []redlock.Vote
	Nodes    []redlock.Node
	Lost     []string
}

// Count counts the end of an operation.
func (y *HookRecorder) Count(kind redlock.OpKind, err error) {
	r := &y.Kinds[kind]
	switch {
	case err == nil:
		r.Won++
	case testkit.IsAny(err, redlock.ErrTaken, redlock.ErrSplit, redlock.ErrNotHeld):
		r.Denied++
	case testkit.IsAny(err, redlock.ErrNoQuorum):
		r.NoQuorum++
	case testkit.IsAny(err, redlock.ErrExpired):
		r.Expired++
	case testkit.IsAny(err, context.Canceled, context.DeadlineExceeded):
		r.Cancelled++
	case testkit.IsAny(err, redlock.ErrBusy, redlock.ErrClosed):
		r.Refused++
	}
}

// Hooks returns the hooks for a client.
func (y *HookRecorder) Hooks() redlock.Hooks {
	locked := func(f func()) {
		y.Mu.Lock()
		defer y.Mu.Unlock()
		f()
	}
	node := func(n redlock.Node) { locked(func() { y.Nodes = append(y.Nodes, n) }) }
	return redlock.Hooks{
		Attempt: func(a redlock.Attempt) {
			locked(func() { y.Count(a.Kind, a.Err); y.Attempts = append(y.Attempts, a) })
		},
		Vote: func(v redlock.Vote) {
			locked(func() {
				y.Votes[v.Node][v.Outcome-redlock.Granted]++
				if v.Err != nil {
					y.Failed = append(y.Failed, v)
				}
			})
		},
		NodeUp: node, NodeDown: node,
		LockLost: func(key string, err error) {
			locked(func() { y.Lost = append(y.Lost, fmt.Sprint(key, ": ", err)) })
		},
	}
}

// Take returns the records since the last time.
func Take[T any](y *HookRecorder, list *[]T) (l []T) {
	y.Mu.Lock()
	defer y.Mu.Unlock()
	l, *list = *list, nil
	return l
}

// Listening gives a client the hooks of y.
func Listening(y *HookRecorder) func(*redlock.Config) {
	return func(c *redlock.Config) { c.Hooks = y.Hooks() }
}

// QuarantineRecorder records a client's reports of the quarantine: the nodes without a vote, and how
// many votes of one of them were withheld, and were not.
type QuarantineRecorder struct {
	mu       sync.Mutex
	withheld []redlock.Node
	votes    map[bool]int
}

// Of has a client report to w, with the votes of one node.
func (w *QuarantineRecorder) Of(node int) func(*redlock.Config) {
	return func(c *redlock.Config) {
		c.Hooks.NodeQuarantined = func(n redlock.Node) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.withheld = append(w.withheld, n)
		}
		c.Hooks.Vote = func(v redlock.Vote) {
			if v.Node == node && v.Kind != redlock.OpRelease {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.count(v.Err == conn.ErrQuarantined)
			}
		}
	}
}

func (w *QuarantineRecorder) count(withheld bool) {
	if w.votes == nil {
		w.votes = map[bool]int{}
	}
	w.votes[withheld]++
}

// Take returns the records since the last time.
func (w *QuarantineRecorder) Take() (withheld []redlock.Node, votes map[bool]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	withheld, votes = w.withheld, w.votes
	w.withheld, w.votes = nil, nil
	return withheld, votes
}
