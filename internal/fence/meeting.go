package fence

import (
	"context"
	"errors"
	"sync"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/texts"
)

// Meeting is where the groups of a client wait for each other in a change: a key may go from any
// group to any other. So none serves clients of the next groups alone before all refuse those of the
// present ones, and by then it knows the largest token that any of them has given.
type Meeting struct {
	mu     sync.Mutex
	left   int           // groups that have not joined
	floor  uint64        // the largest token of those that have; final when all is closed
	all    chan struct{} // closed when all have joined
	failed chan struct{} // closed when one never will
	once   sync.Once
}

// NewMeeting returns a meeting of so many groups.
func NewMeeting(groups int) *Meeting {
	return &Meeting{left: groups, all: make(chan struct{}), failed: make(chan struct{})}
}

// join is called once by each group, with the largest token that it knows.
func (m *Meeting) join(floor uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.floor = max(m.floor, floor)
	if m.left--; m.left == 0 {
		close(m.all)
	}
}

// fail is called by a group whose change has failed.
func (m *Meeting) fail() { m.once.Do(func() { close(m.failed) }) }

// errAlone is the error of a group that waits in vain.
var errAlone = errors.New("redlock: the change of another group has failed, and all groups change together")

// await waits until all groups have joined.
func (m *Meeting) await(ctx context.Context, c *Client) error {
	select {
	case <-m.all:
		return nil
	case <-m.failed:
		return errAlone
	case <-ctx.Done():
		return texts.NotReady(ctx, c.Votes())
	case <-c.cfg.Ending:
		return engine.ErrClosed
	}
}
