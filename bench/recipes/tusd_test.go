package recipes

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tus/tusd/v2/pkg/handler"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

func uploadLockOf(t *testing.T, client *redlock.Client) *uploadLock {
	composer := handler.NewStoreComposer()
	composer.UseLocker(UploadLocker{client})
	lock, err := composer.Locker.NewLock("42")
	require.NoError(t, err)
	return lock.(*uploadLock)
}

// TestUploadLocker: the holder of an upload is asked to end when another request waits for it, of its process or of
// another. A request that waits for too long is told so, and the next one gets the upload.
func TestUploadLocker(t *testing.T) {
	clients, _ := instances(t, 2)
	for _, other := range clients {
		holder, waiter := uploadLockOf(t, clients[0]), uploadLockOf(t, other)
		asked := make(chan struct{})
		require.NoError(t, holder.Lock(bounded(t), func() { close(asked) }))
		require.False(t, testkit.IsClosed(asked))
		ctx, cancel := context.WithCancel(bounded(t))
		locked := make(chan error, 1)
		go func() { locked <- waiter.Lock(ctx, nil) }()
		testkit.Get(t, asked)
		cancel()
		require.ErrorIs(t, testkit.Get(t, locked), handler.ErrLockTimeout)

		go func() { locked <- waiter.Lock(bounded(t), func() { t.Error("no other request waits") }) }()
		require.NoError(t, holder.Unlock())
		require.NoError(t, testkit.Get(t, locked))
		require.NoError(t, waiter.Unlock())
	}
}

// TestUploadLockEnds: the holder is asked to end when its lock is lost, and not when it has unlocked the upload.
func TestUploadLockEnds(t *testing.T) {
	clients, masters := instances(t, 1)
	holder, lost := uploadLockOf(t, clients[0]), make(chan struct{})
	require.NoError(t, holder.Lock(bounded(t), func() { close(lost) }))
	for isLost := false; !isLost; {
		for i := range 3 {
			masters.Delete(i, holder.key)
		}
		isLost = holder.lock.Extend(bounded(t), redlock.MinTTL) != nil
	}
	testkit.Get(t, lost)
	require.ErrorIs(t, holder.Unlock(), redlock.ErrNotHeld)

	lock, err := clients[0].Acquire(bounded(t), holder.key, time.Minute)
	require.NoError(t, err)
	kept, _ := lock.KeepAlive(bounded(t))
	require.NoError(t, lock.Release(bounded(t)))
	watch(kept, func() { t.Error("it was unlocked") })
}
