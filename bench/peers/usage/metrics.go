package usage

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/redlock-go/redlock"
)

// Metrics has the counts of a client for Prometheus.
func Metrics(client *redlock.Client) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_ = client.Stats().WriteMetrics(w)
	}
}

// PeerMetrics wraps the lock call of a library without metrics of locks, such as TryLock of etcd or redsync: results and times
// of acquires, a part of what ours has.
func PeerMetrics(registry prometheus.Registerer, lock func(context.Context) error) func(context.Context) error {
	results := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "lock_acquires_total", Help: "Acquires by result."}, []string{"result"})
	times := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "lock_acquire_seconds", Help: "Times of acquires."})
	registry.MustRegister(results, times)
	return func(ctx context.Context) error {
		began := time.Now()
		err := lock(ctx)
		times.Observe(time.Since(began).Seconds())
		switch {
		case err == nil:
			results.WithLabelValues("won").Inc()
		case errors.Is(err, concurrency.ErrLocked):
			results.WithLabelValues("denied").Inc()
		default:
			results.WithLabelValues("failed").Inc()
		}
		return err
	}
}
