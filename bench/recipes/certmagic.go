package recipes

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/redlock-go/redlock"
)

// Storage is any Storage of certmagic with the locks of redlock, so that one instance obtains a certificate:
// certmagic.Default.Storage = &Storage{Storage: shared, Client: client}.
type Storage struct {
	certmagic.Storage
	Client *redlock.Client
	held   sync.Map // name → redlock.Lock
}

// Lock waits for the lock on name, and keeps it until Unlock.
func (s *Storage) Lock(ctx context.Context, name string) error {
	lock, err := s.Client.Acquire(ctx, "certmagic:"+name, 10*time.Second)
	return s.keep(ctx, name, lock, err)
}

// TryLock is Lock without waiting.
func (s *Storage) TryLock(ctx context.Context, name string) (bool, error) {
	lock, err := s.Client.TryAcquire(ctx, "certmagic:"+name, 10*time.Second)
	if errors.Is(err, redlock.ErrTaken) {
		return false, nil
	}
	return err == nil, s.keep(ctx, name, lock, err)
}

func (s *Storage) keep(ctx context.Context, name string, lock redlock.Lock, err error) error {
	if err == nil {
		lock.KeepAlive(context.WithoutCancel(ctx))
		s.held.Store(name, lock)
	}
	return err
}

// Unlock releases the lock.
func (s *Storage) Unlock(ctx context.Context, name string) error {
	held, _ := s.held.LoadAndDelete(name)
	lock, _ := held.(redlock.Lock)
	return lock.Release(ctx)
}
