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
// lock stays for atLeast, also if the job is done before, or its instance dies: an instance with a late
// clock finds it taken.
//
//	cron.New(cron.WithChain(OnOneInstance(client, "report", 20*time.Second)))
func OnOneInstance(client *redlock.Client, name string, atLeast time.Duration) cron.JobWrapper {
	client = client.With(redlock.Options{AtLeast: atLeast})
	return func(job cron.Job) cron.Job {
		return cron.FuncJob(func() {
			err := client.TryDo(context.Background(), "cron:"+name, 10*time.Second, func(context.Context) error {
				job.Run()
				return nil
			})
			if err != nil && !errors.Is(err, redlock.ErrTaken) {
				slog.Error("cron: job", "name", name, "error", err)
			}
		})
	}
}
