package recipes

import (
	"context"
	"time"

	"github.com/tus/tusd/v2/pkg/handler"

	"github.com/redlock-go/redlock"
)

// UploadLocker is the Locker of tusd: composer.UseLocker(UploadLocker{client}). A waiter for an upload holds the lock
// "wanted" meanwhile, and the holder of the upload looks for that lock once a second.
type UploadLocker struct{ Client *redlock.Client }

func (l UploadLocker) NewLock(id string) (handler.Lock, error) {
	return &uploadLock{client: l.Client, key: "upload:" + id}, nil
}

type uploadLock struct {
	client *redlock.Client
	key    string
	lock   redlock.Lock
}

func (l *uploadLock) Lock(ctx context.Context, requestRelease func()) (err error) {
	if l.lock, err = l.client.TryAcquire(ctx, l.key, 10*time.Second); err != nil {
		err = l.client.Do(ctx, l.key+":wanted", 10*time.Second, func(ctx context.Context) (err error) {
			l.lock, err = l.client.Acquire(ctx, l.key, 10*time.Second)
			return err
		})
	}
	if ctx.Err() != nil {
		l.lock.ReleaseAsync()
		return handler.ErrLockTimeout
	}
	if err == nil {
		kept, _ := l.lock.KeepAlive(context.WithoutCancel(ctx))
		go l.watch(kept, requestRelease)
	}
	return err
}

// watch asks the holder to end when another wants the upload, or when the lock is lost.
func (l *uploadLock) watch(kept context.Context, requestRelease func()) {
	for ; kept.Err() == nil; wait(kept, time.Second) {
		if wanted, err := l.client.Inspect(kept, l.key+":wanted"); err == nil && wanted.Status == redlock.KeyHeld {
			requestRelease()
		}
	}
	if context.Cause(kept) != redlock.ErrStopped {
		requestRelease()
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (l *uploadLock) Unlock() error { return l.lock.Release(context.Background()) }
