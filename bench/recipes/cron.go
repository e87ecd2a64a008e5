package recipes

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/redlock-go/redlock"
)

// OnOneInstance wraps a job of robfig/cron that one instance of a program runs whenever it is due. The
// lock is held for atLeast, also if the job is done before: an instance with a late clock finds it taken.
//
//	cron.New(cron.WithChain(OnOneInstance(client, "report", 20*time.Second)))
func OnOneInstance(client *redlock.Client, name string, atLeast time.Duration) cron.JobWrapper {
	return func(job cron.Job) cron.Job {
		return cron.FuncJob(func() {
			err := client.TryDo(context.Background(), "cron:"+name, 10*time.Second, func(ctx context.Context) error {
				over := time.After(atLeast)
				job.Run()
				select {
				case <-over:
				case <-ctx.Done(): // the lock is lost, or the client shuts down
				}
				return nil
			})
			if err != nil && !errors.Is(err, redlock.ErrTaken) {
				slog.Error("cron: job", "name", name, "error", err)
			}
		})
	}
}
