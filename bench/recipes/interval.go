package recipes

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock"
)

// OncePer calls f unless a process has begun it within the last interval. Such a lock is not released: it
// ends with its TTL, the interval. The context of f ends before.
func OncePer(ctx context.Context, client *redlock.Client, key string, interval time.Duration, f func(context.Context) error) error {
	lock, err := client.TryAcquire(ctx, key, interval)
	if errors.Is(err, redlock.ErrTaken) {
		return nil
	}
	if err != nil {
		return err
	}
	return within(ctx, lock, f)
}

// Every calls f once per interval, in one of the processes that call Every: when an interval is over, the
// first of those who wait begins the next. It returns when ctx ends, or with an error of the lock.
func Every(ctx context.Context, client *redlock.Client, key string, interval time.Duration, f func(context.Context) error) error {
	for {
		lock, err := client.Acquire(ctx, key, interval)
		if err != nil {
			return err
		}
		_ = within(ctx, lock, f)
	}
}

// within calls f for as long as lock is valid. If f fails another process may try at once.
func within(ctx context.Context, lock redlock.Lock, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, lock.Remaining())
	defer cancel()
	err := f(ctx)
	if err != nil {
		lock.ReleaseAsync()
	}
	return err
}
