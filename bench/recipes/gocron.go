package recipes

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/redlock-go/redlock"
)

// Locker has each job of gocron run on one instance: gocron.WithDistributedLocker(Locker{client, time.Second}).
// A lock is held for AtLeast, also if the job is done before: an instance with a late clock finds it taken.
type Locker struct {
	Client  *redlock.Client
	AtLeast time.Duration
}

// Lock takes the lock on a job if it is free, and keeps it until Unlock.
func (l Locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	lock, err := l.Client.TryAcquire(ctx, "gocron:"+job, 10*time.Second)
	if err != nil {
		return nil, err
	}
	lock.KeepAlive(context.WithoutCancel(ctx))
	return jobLock{lock, time.Now().Add(l.AtLeast)}, nil
}

type jobLock struct {
	lock  redlock.Lock
	until time.Time
}

func (l jobLock) Unlock(context.Context) error {
	time.AfterFunc(time.Until(l.until), l.lock.ReleaseAsync)
	return nil
}

// Elector has all jobs of gocron run on the instance that leads: gocron.WithDistributedElector(elector), with
// go elector.Run(ctx, client, "scheduler") beside it. Copy leader.go too.
type Elector struct {
	term atomic.Pointer[context.Context]
}

// Run stands for election until ctx ends.
func (e *Elector) Run(ctx context.Context, client *redlock.Client, name string) error {
	return Lead(ctx, client, name, func(ctx context.Context) error {
		e.term.Store(&ctx)
		<-ctx.Done()
		return nil
	})
}

// IsLeader is right also after the process stood still: the context reads the clock.
func (e *Elector) IsLeader(context.Context) error {
	if term := e.term.Load(); term == nil || (*term).Err() != nil {
		return errors.New("another instance leads")
	}
	return nil
}
