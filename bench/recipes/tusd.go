package recipes

import (
	"context"
	"time"

	"github.com/tus/tusd/v2/pkg/handler"

	"github.com/redlock-go/redlock"
)

// UploadLocker is the Locker of tusd: composer.UseLocker(UploadLocker{client}). The holder of an upload is asked to
// end when another request waits for it, also in another process.
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
	l.lock, err = l.client.Acquire(ctx, l.key, 10*time.Second)
	if ctx.Err() != nil {
		l.lock.ReleaseAsync()
		return handler.ErrLockTimeout
	}
	if err == nil {
		kept, _ := l.lock.KeepAlive(context.WithoutCancel(ctx))
		go watch(kept, requestRelease)
	}
	return err
}

// watch asks the holder to end when another wants the upload, or when the lock is lost.
func watch(kept context.Context, requestRelease func()) {
	select {
	case <-redlock.WantedFrom(kept):
	case <-kept.Done():
	}
	if context.Cause(kept) != redlock.ErrStopped { // of Unlock
		requestRelease()
	}
}

func (l *uploadLock) Unlock() error { return l.lock.Release(context.Background()) }
