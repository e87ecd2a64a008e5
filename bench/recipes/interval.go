package recipes

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock"
)

// OncePer calls f unless a process has begun it within the last interval. The lock stays for the interval,
// also if f fails.
func OncePer(ctx context.Context, client *redlock.Client, key string, interval time.Duration, f func(context.Context) error) error {
	err := client.With(redlock.Options{AtLeast: interval}).TryDo(ctx, key, 10*time.Second, f)
	if errors.Is(err, redlock.ErrTaken) {
		return nil
	}
	return err
}

// Every calls f once per interval, in one of the processes that call Every. When an interval is over, the first waiting
// process begins the next. It returns when ctx ends, or with an error of the lock.
func Every(ctx context.Context, client *redlock.Client, key string, interval time.Duration, f func(context.Context) error) error {
	client = client.With(redlock.Options{AtLeast: interval})
	for {
		err := client.Do(ctx, key, 10*time.Second, func(ctx context.Context) error {
			_ = f(ctx)
			return nil
		})
		if err != nil {
			return err
		}
	}
}
