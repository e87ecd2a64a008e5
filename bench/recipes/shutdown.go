package recipes

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/redlock-go/redlock"
)

// Serve serves until ctx ends, such as that of signal.NotifyContext(ctx, syscall.SIGTERM). Then requests end, the
// contexts of Do end, and their locks are released, so that a deploy costs the next process no TTL. grace
// is shorter than the time until the process is killed.
func Serve(ctx context.Context, server *http.Server, client *redlock.Client, grace time.Duration) error {
	served := make(chan error, 1)
	go func() { served <- server.ListenAndServe() }()
	select {
	case err := <-served:
		return errors.Join(err, client.Close())
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	return errors.Join(server.Shutdown(ctx), client.Shutdown(ctx))
}

// Probe is the handler of a readiness probe: 200 while locks can be acquired, else 503 with the reason of each node.
func Probe(client *redlock.Client) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		now, cancel := context.WithCancel(context.Background())
		cancel() // Ready does not wait
		if err := client.Ready(now); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	}
}
