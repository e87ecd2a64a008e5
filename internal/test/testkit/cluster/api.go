package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock"
)

// Results and Waits are the types of fields of redlock.Stats.
type (
	Results = struct{ Won, Denied, NoQuorum, Expired, Cancelled, Refused uint64 }
	Waits   = struct {
		Granted, HandedOver, GaveUp, UsedUp, Closed, Failed uint64

		Total, Longest time.Duration
	}
)

// IsReady is Ready with an ended context, without this context's error.
func IsReady(c interface{ Ready(context.Context) error }) error {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	err := c.Ready(ended)
	var why *redlock.QuorumError
	if errors.As(err, &why) {
		return why
	}
	return err
}

// Keep keeps a lock alive until it is released. lost may be nil; it is called with the cause if the
// lock is lost.
func Keep(l redlock.Lock, lost func(error)) error {
	ctx, _ := l.KeepAlive(context.Background())
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if lost != nil {
		context.AfterFunc(ctx, func() {
			if cause := context.Cause(ctx); cause != redlock.ErrStopped {
				lost(cause)
			}
		})
	}
	return nil
}
