package grants_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/server/grants"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

// TestShortenedThenReleased: the end of a shortened TTL is no news of a lock released before it: no
// waiter for the next holder's lock is woken.
func TestShortenedThenReleased(t *testing.T) {
	virtual.Run(t, 3, func(w *virtual.World) {
		s := in(w)
		defer s.Close()
		_, err := s.Acquire(w.T.Context(), "k", "v", time.Hour)
		require.NoError(t, err)
		outcome, err := s.Extend(w.T.Context(), "k", grants.By("v"), grants.TTL{Value: time.Second})
		require.NoError(t, err)
		require.Equal(t, grants.Done, outcome)
		_, err = s.Release(w.T.Context(), "k", grants.By("v"))
		require.NoError(t, err)
		next, err := s.Acquire(w.T.Context(), "k", "w", time.Hour)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(w.T.Context(), 10*time.Second)
		defer cancel()
		free, _ := s.Wait(ctx, "k")
		require.False(t, free)
		require.Positive(t, next.Lock.Remaining())
	})
}
