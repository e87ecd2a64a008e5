package recipes

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/redlock-go/redlock"
)

// Exclusive answers a request by work under the lock on key: 200 with what work returns; 409 if another
// request has the lock for a second; 503 if too few nodes answer, or work fails and has lost its lock; 500
// if work fails. Work that has ended well is done, also if its lock was lost before: it may not have been
// alone. The client must not repeat it.
func Exclusive(client *redlock.Client, key func(*http.Request) string, work func(context.Context, *http.Request) ([]byte, error)) http.HandlerFunc {
	client = client.With(redlock.Options{Wait: time.Second})
	return func(w http.ResponseWriter, r *http.Request) {
		var reply []byte
		var failed error
		err := client.Do(r.Context(), key(r), 10*time.Second, func(ctx context.Context) error {
			reply, failed = work(ctx, r)
			return nil
		})
		var lost *redlock.LostError // work was called
		switch {
		case errors.Is(err, redlock.ErrTaken):
			http.Error(w, "another request is at it", http.StatusConflict)
		case err != nil && (failed != nil || !errors.As(err, &lost)):
			slog.Error("lock", "key", key(r), "error", err)
			w.Header().Set("Retry-After", "1")
			http.Error(w, "try again later", http.StatusServiceUnavailable)
		case failed != nil:
			http.Error(w, "failed", http.StatusInternalServerError)
		default:
			_, _ = w.Write(reply)
		}
	}
}
