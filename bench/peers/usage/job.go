package usage

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/redis/rueidis/rueidislock"
	"github.com/robfig/cron/v3"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// EtcdJob is OnOneInstance of bench/recipes, by etcd.
func EtcdJob(client *clientv3.Client, name string, atLeast time.Duration) cron.JobWrapper {
	return func(job cron.Job) cron.Job {
		return cron.FuncJob(func() {
			session, err := concurrency.NewSession(client, concurrency.WithTTL(10))
			if err == nil {
				defer session.Close()
				err = concurrency.NewMutex(session, "cron:"+name).TryLock(client.Ctx())
			}
			if err != nil {
				if !errors.Is(err, concurrency.ErrLocked) {
					slog.Error("cron: job", "name", name, "error", err)
				}
				return
			}
			over := time.After(atLeast)
			job.Run()
			select {
			case <-over:
			case <-session.Done():
			}
		})
	}
}

// RueidisJob is the same by rueidislock.
func RueidisJob(locker rueidislock.Locker, name string, atLeast time.Duration) cron.JobWrapper {
	return func(job cron.Job) cron.Job {
		return cron.FuncJob(func() {
			ctx, release, err := locker.TryWithContext(context.Background(), "cron:"+name)
			if err != nil {
				if !errors.Is(err, rueidislock.ErrNotLocked) {
					slog.Error("cron: job", "name", name, "error", err)
				}
				return
			}
			defer release()
			over := time.After(atLeast)
			job.Run()
			select {
			case <-over:
			case <-ctx.Done():
			}
		})
	}
}
