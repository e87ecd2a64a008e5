package cluster

import (
	"context"
	"fmt"
	"sync"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// HookRecorder records the calls of hooks, in numbers and in full.
type HookRecorder struct {
	Mu          sync.Mutex
	Kinds       [4]Results
	Votes       [16][3]uint64
	Attempts    []redlock.Attempt
	Failed      []redlock.Vote
	Nodes       []redlock.Node
	Quarantined []redlock.Node
	Lost        []string
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
		NodeQuarantined: func(n redlock.Node) { locked(func() { y.Quarantined = append(y.Quarantined, n) }) },
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
