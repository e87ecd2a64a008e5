package recipes

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/redlock-go/redlock"
)

// Lead calls lead in one process at a time, among those that call Lead with the same name. The context of lead ends
// with its leadership. When lead returns, the process steps down: another leads, or itself a second later. Lead returns
// when ctx ends or the client shuts down.
func Lead(ctx context.Context, client *redlock.Client, name string, lead func(ctx context.Context) error) error {
	for {
		err := client.Do(ctx, name, 10*time.Second, lead)
		if ctx.Err() != nil || errors.Is(err, redlock.ErrClosed) {
			return err
		}
		slog.Info("stepped down", "name", name, "error", err)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}
