package recipes

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestServe: at the end of ctx the function of Do is told to end, and its lock is free for the next process.
func TestServe(t *testing.T) {
	clients, masters := instances(t, 2)
	ctx, terminate := context.WithCancel(t.Context())
	began, done, served := make(chan struct{}), make(chan error), make(chan error)
	go func() { served <- Serve(ctx, &http.Server{Addr: "127.0.0.1:0"}, clients[0], 5*time.Second) }()
	go func() {
		done <- clients[0].Do(t.Context(), "consumer", time.Hour, func(ctx context.Context) error {
			close(began)
			<-ctx.Done()
			return nil
		})
	}()
	<-began
	terminate()
	require.NoError(t, <-served)
	require.NoError(t, <-done)
	_, err := clients[1].Acquire(bounded(t), "consumer", time.Hour)
	require.NoError(t, err)

	ready := httptest.NewRecorder()
	Probe(clients[1])(ready, nil)
	require.Equal(t, http.StatusOK, ready.Code)
	masters.Stop(0)
	masters.Stop(1)
	require.Eventually(t, func() bool {
		ready = httptest.NewRecorder()
		Probe(clients[1])(ready, nil)
		return ready.Code == http.StatusServiceUnavailable
	}, time.Minute, time.Millisecond)
	require.Contains(t, ready.Body.String(), masters.Addrs()[0])
}
