package workload

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/redis/go-redis/v9"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/bench/network/history"
)

// library is what each lock client can do.
type library interface {
	Acquire(ctx context.Context, key string, ttl time.Duration) (held, error)
	TryAcquire(ctx context.Context, key string, ttl time.Duration) (held, error)
}

// held is a lock.
type held interface {
	Remaining() time.Duration
	Release(ctx context.Context) error
	Extend(ctx context.Context, ttl time.Duration) error
	Fence() uint64
}

// ours is this library.
type ours struct{ *redlock.Client }

func (o ours) Acquire(ctx context.Context, key string, ttl time.Duration) (held, error) {
	return o.Client.Acquire(ctx, key, ttl)
}

func (o ours) TryAcquire(ctx context.Context, key string, ttl time.Duration) (held, error) {
	return o.Client.TryAcquire(ctx, key, ttl)
}

// digest is that of the token of a lock, as Inspect shows it. The lock's text has it; Token would keep the lock from being
// passed on.
func digest(l redlock.Lock) string {
	_, d, _ := strings.Cut(fmt.Sprint(l), "digest ")
	return d
}

// results are the names of errors.
var results = []struct {
	err  error
	name string
}{
	{redlock.ErrTaken, history.Taken}, {redlock.ErrNoQuorum, history.NoQuorum}, {redlock.ErrNotHeld, history.NotHeld},
	{redlock.ErrExpired, "expired"}, {redlock.ErrClosed, "closed"}, {redlock.ErrBusy, "busy"}, {redlock.ErrStopped, "stopped"},
	{redlock.ErrForgotten, "forgotten"}, {redlock.ErrConfig, "config"}, {redlock.ErrArgument, "argument"}, {redlock.ErrSplit, "split"}, {redlock.ErrNoAnswer, history.NoAnswer},
	{redsync.ErrLockAlreadyExpired, history.NotHeld}, {redsync.ErrFailed, history.NoQuorum}, {redsync.ErrExtendFailed, history.NoQuorum},
	{redis.Nil, history.Taken},
	{context.DeadlineExceeded, history.Deadline}, {context.Canceled, "canceled"},
}

// result names an error as the checker reads it. Two that are found in one are joined by +.
func result(err error) string {
	if err == nil {
		return history.OK
	}
	var gaveUp *redlock.AcquireError
	if errors.As(err, &gaveUp) {
		if gaveUp.Last == nil {
			return history.GaveUp + history.Nothing
		}
		return history.GaveUp + result(gaveUp.Last)
	}
	var taken *redsync.ErrTaken
	if errors.As(err, &taken) {
		return history.Taken
	}
	var found []string
	for _, r := range results {
		if errors.Is(err, r.err) {
			found = append(found, r.name)
		}
	}
	if found == nil {
		return "another error"
	}
	return strings.Join(found, "+")
}

func text(err error) string {
	if err == nil {
		return ""
	}
	s := err.Error()
	return s[:min(len(s), 400)]
}
