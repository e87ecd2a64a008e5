package recipes

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/require"
)

// once is a schedule that is due at one moment.
type once time.Time

func (o once) Next(now time.Time) time.Time {
	if at := time.Time(o); now.Before(at) {
		return at
	}
	return time.Time{}
}

// TestOnOneInstance: a job that is due on two instances runs on one.
func TestOnOneInstance(t *testing.T) {
	clients, _ := instances(t, 2)
	var runs atomic.Int32
	skipped := make(chan struct{}, 2)
	at := once(time.Now().Add(50 * time.Millisecond))
	for _, client := range clients {
		c := cron.New(cron.WithChain(func(job cron.Job) cron.Job {
			return cron.FuncJob(func() { job.Run(); skipped <- struct{}{} })
		}, OnOneInstance(client, "report", time.Hour)))
		c.Schedule(at, cron.FuncJob(func() { runs.Add(1) }))
		c.Start()
		defer func() { <-c.Stop().Done() }()
	}
	<-skipped
	for _, client := range clients { // they wait for no lock
		require.NoError(t, client.Shutdown(bounded(t)))
	}
	<-skipped
	require.EqualValues(t, 1, runs.Load())
}
