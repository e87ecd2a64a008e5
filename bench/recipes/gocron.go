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
// A lock stays for AtLeast, also if the job is done before, or its instance dies: an instance with a late clock
// finds it taken.
type Locker struct {
	Client  *redlock.Client
	AtLeast time.Duration
}

// Lock takes the lock on a job if it is free, and keeps it until Unlock.
func (l Locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	unlock, begun := make(jobLock), make(chan error, 2)
	client := l.Client.With(redlock.Options{AtLeast: l.AtLeast})
	go func() {
		begun <- client.TryDo(context.WithoutCancel(ctx), "gocron:"+job, 10*time.Second, func(ctx context.Context) error {
			begun <- nil
			select {
			case <-unlock:
			case <-ctx.Done(): // the lock is lost, or the client shuts down
			}
			return nil
		})
	}()
	if err := <-begun; err != nil {
		return nil, err
	}
	return unlock, nil
}

type jobLock chan struct{}

func (l jobLock) Unlock(context.Context) error { close(l); return nil }

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
