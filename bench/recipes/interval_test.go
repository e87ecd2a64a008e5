package recipes

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOncePer: of all calls in an interval the first calls f, also if f fails.
func TestOncePer(t *testing.T) {
	clients, _ := instances(t, 2)
	runs, failure := 0, errors.New("no disk")
	f := func(context.Context) error {
		runs++
		return failure
	}
	require.ErrorIs(t, OncePer(t.Context(), clients[0], "daily", time.Hour, f), failure)
	require.NoError(t, clients[0].Shutdown(t.Context()))
	for range 3 {
		require.NoError(t, OncePer(t.Context(), clients[1], "daily", time.Hour, f))
	}
	require.Equal(t, 1, runs)
}

// TestEvery: while two processes wait, f is called again and again, and no two times at once.
func TestEvery(t *testing.T) {
	clients, _ := instances(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	runs, ended := make(chan time.Time), make(chan error)
	for _, client := range clients {
		go func() {
			ended <- Every(ctx, client, "tick", 50*time.Millisecond, func(context.Context) error {
				runs <- time.Now()
				return nil
			})
		}()
	}
	for range 4 {
		<-runs
	}
	cancel()
	for range clients {
		select {
		case <-runs: // one more has begun
			require.ErrorIs(t, <-ended, context.Canceled)
		case err := <-ended:
			require.ErrorIs(t, err, context.Canceled)
		}
	}
}
