package recipes

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLead: the leader steps down, and the other leads; it ends with its client.
func TestLead(t *testing.T) {
	clients, _ := instances(t, 2)
	leads, stepDown, ended := make(chan int), make(chan struct{}), make(chan error)
	for i, client := range clients {
		go func() {
			ended <- Lead(t.Context(), client, "scheduler", func(ctx context.Context) error {
				leads <- i
				select {
				case <-stepDown:
				case <-ctx.Done():
				}
				return nil
			})
		}()
	}
	first := <-leads
	stepDown <- struct{}{}
	second := <-leads
	require.NotEqual(t, first, second)
	require.NoError(t, clients[second].Shutdown(bounded(t)))
	<-ended
	require.Equal(t, first, <-leads)
	require.NoError(t, clients[first].Shutdown(bounded(t)))
	<-ended
}
