package recipes

import (
	"context"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// TestLocker: a job that is due on two schedulers runs on one.
func TestLocker(t *testing.T) {
	clients, _ := instances(t, 2)
	refused, done := make(chan error), make(chan struct{}, 2)
	for _, client := range clients {
		s, err := gocron.NewScheduler(gocron.WithDistributedLocker(Locker{client, time.Hour}))
		require.NoError(t, err)
		_, err = s.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), gocron.NewTask(func() {
			<-refused // while the other one is told
			done <- struct{}{}
		}), gocron.WithName("report"), gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { refused <- err })))
		require.NoError(t, err)
		s.Start()
		defer func() { require.NoError(t, s.Shutdown()) }()
	}
	<-done
}

// TestElector: one scheduler leads; when its client ends the other does.
func TestElector(t *testing.T) {
	clients, _ := instances(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	electors, ended := make([]Elector, 2), make(chan error)
	for i := range electors {
		go func() { ended <- electors[i].Run(ctx, clients[i], "scheduler") }()
	}
	leader := -1
	elected := func() bool {
		for i := range electors {
			if electors[i].IsLeader(ctx) == nil {
				leader = i
			}
		}
		return leader >= 0
	}
	require.Eventually(t, elected, time.Minute, time.Millisecond)
	first := leader
	require.Error(t, electors[1-first].IsLeader(ctx))
	require.NoError(t, clients[first].Shutdown(bounded(t)))
	<-ended
	require.Error(t, electors[first].IsLeader(ctx))
	leader = -1
	require.Eventually(t, elected, time.Minute, time.Millisecond)
	require.Equal(t, 1-first, leader)

	ran := make(chan struct{})
	s, err := gocron.NewScheduler(gocron.WithDistributedElector(&electors[leader]))
	require.NoError(t, err)
	_, err = s.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), gocron.NewTask(func() { close(ran) }))
	require.NoError(t, err)
	s.Start()
	<-ran
	require.NoError(t, s.Shutdown())
	cancel()
	<-ended
}
