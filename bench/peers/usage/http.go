package usage

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/redis/rueidis/rueidislock"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// EtcdExclusive is Exclusive of bench/recipes, by etcd.
func EtcdExclusive(client *clientv3.Client, key func(*http.Request) string, work func(context.Context, *http.Request) ([]byte, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var reply []byte
		var failed error
		session, err := concurrency.NewSession(client, concurrency.WithTTL(10))
		if err == nil {
			defer session.Close()
			err = concurrency.NewMutex(session, key(r)).TryLock(r.Context())
		}
		if err == nil {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(session.Ctx(), cancel)()
			reply, failed = work(ctx, r)
			err = session.Ctx().Err()
		}
		switch {
		case errors.Is(err, concurrency.ErrLocked):
			http.Error(w, "another request is at it", http.StatusConflict)
		case err != nil:
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

// RueidisExclusive is the same by rueidislock.
func RueidisExclusive(locker rueidislock.Locker, key func(*http.Request) string, work func(context.Context, *http.Request) ([]byte, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var reply []byte
		var failed error
		ctx, release, err := locker.TryWithContext(r.Context(), key(r))
		if err == nil {
			defer release()
			reply, failed = work(ctx, r)
			err = ctx.Err()
		}
		switch {
		case errors.Is(err, rueidislock.ErrNotLocked):
			http.Error(w, "another request is at it", http.StatusConflict)
		case err != nil:
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
