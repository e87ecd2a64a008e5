package recipes

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExclusive: 200, also for work that was done as its lock was lost; 500; 409 beside another request; and 503 without a
// quorum, and for work that has failed with its lock.
func TestExclusive(t *testing.T) {
	clients, masters := instances(t, 1)
	var work func(context.Context) ([]byte, error)
	handler := Exclusive(clients[0], func(r *http.Request) string { return r.URL.Path }, func(ctx context.Context, _ *http.Request) ([]byte, error) { return work(ctx) })
	answer := func() (int, string) {
		w := httptest.NewRecorder()
		handler(w, httptest.NewRequest("POST", "/orders/42", nil))
		return w.Code, w.Body.String()
	}
	requireStatus := func(want int) {
		t.Helper()
		code, body := answer()
		require.Equal(t, want, code, body)
	}
	done := func(context.Context) ([]byte, error) { return []byte("done"), nil }

	work = func(context.Context) ([]byte, error) {
		requireStatus(http.StatusConflict)
		return done(nil)
	}
	code, body := answer()
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "done", body)
	work = func(context.Context) ([]byte, error) { return nil, errors.New("no disk") }
	requireStatus(http.StatusInternalServerError)
	work = func(ctx context.Context) ([]byte, error) {
		for i := range 2 {
			masters.Stop(i)
		}
		clients[0].Close() // or a TTL later
		<-ctx.Done()
		return done(ctx)
	}
	requireStatus(http.StatusOK)
	requireStatus(http.StatusServiceUnavailable)

	clients, _ = instances(t, 1)
	handler = Exclusive(clients[0], func(*http.Request) string { return "cart" }, func(ctx context.Context, _ *http.Request) ([]byte, error) {
		clients[0].Close()
		<-ctx.Done()
		return nil, ctx.Err()
	})
	requireStatus(http.StatusServiceUnavailable)
}
