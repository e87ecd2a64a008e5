package fence

import (
	"context"
	"errors"
	"sync"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/texts"
)

// meetings is how often the groups meet.
const meetings = 2

// Meeting is where the groups of a client wait for each other in a change: a key may go from any
// group to any other. So none serves clients of the next groups alone before all refuse those of the
// present ones, and by then it knows the largest token that any of them has given.
type Meeting struct {
	mu     sync.Mutex
	left   [meetings]int           // groups that have not come
	floor  uint64                  // the largest token of those that have; final when all have come to the last
	all    [meetings]chan struct{} // closed when all have come
	failed chan struct{}           // closed when one never will
	once   sync.Once
}

// NewMeeting returns the meetings of so many groups.
func NewMeeting(groups int) *Meeting {
	m := &Meeting{failed: make(chan struct{})}
	for i := range meetings {
		m.left[i], m.all[i] = groups, make(chan struct{})
	}
	return m
}

// fail is called by a group whose change has failed.
func (m *Meeting) fail() { m.once.Do(func() { close(m.failed) }) }

// Errors of changes that have opened nothing.
var (
	errAlone = errors.New("redlock: the change of another group has failed, and all groups change together")
	errSince = errors.New("redlock: nodes have forgotten since they refused clients with the old configuration alone: nothing was opened, and ChangeFencing is to be called again")
)

// meet waits until all groups have come to a meeting. Each comes with the largest token that it knows.
func (m *Meeting) meet(ctx context.Context, c *Client, number int, floor uint64) error {
	if number >= meetings {
		return nil // all have met
	}
	m.mu.Lock()
	m.floor = max(m.floor, floor)
	if m.left[number]--; m.left[number] == 0 {
		close(m.all[number])
	}
	m.mu.Unlock()
	select {
	case <-m.all[number]:
		return nil
	case <-m.failed:
		return errAlone
	case <-ctx.Done():
		return texts.NotReady(ctx, c.Votes())
	case <-c.cfg.Ending:
		return engine.ErrClosed
	}
}
