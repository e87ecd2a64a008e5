package recipes

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOncePer: of two calls in an interval one calls f, unless the first has failed.
func TestOncePer(t *testing.T) {
	clients, _ := instances(t, 2)
	runs, failure := 0, errors.New("no disk")
	f := func(context.Context) error {
		runs++
		if runs == 1 {
			return failure
		}
		return nil
	}
	require.ErrorIs(t, OncePer(t.Context(), clients[0], "daily", time.Hour, f), failure)
	require.Eventually(t, func() bool {
		require.NoError(t, OncePer(t.Context(), clients[1], "daily", time.Hour, f))
		return runs == 2
	}, time.Minute, time.Millisecond, "the release of the first arrives")
	require.NoError(t, OncePer(t.Context(), clients[0], "daily", time.Hour, f))
	require.Equal(t, 2, runs)
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
