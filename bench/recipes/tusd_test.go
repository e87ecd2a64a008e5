package recipes

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tus/tusd/v2/pkg/handler"

	"github.com/redlock-go/redlock"
)

// TestUploadLocker: who has an upload is asked to end when another wants it, and when its lock is lost; who waits
// for too long is told so.
func TestUploadLocker(t *testing.T) {
	clients, masters := instances(t, 2)
	composer := handler.NewStoreComposer()
	composer.UseLocker(UploadLocker{clients[0]})
	first, err := composer.Locker.NewLock("42")
	require.NoError(t, err)
	second, err := UploadLocker{clients[1]}.NewLock("42")
	require.NoError(t, err)

	asked := make(chan struct{}, 10)
	require.NoError(t, first.Lock(t.Context(), func() { asked <- struct{}{} }))
	ctx, cancel := context.WithCancel(t.Context())
	timedOut := make(chan error)
	go func() { timedOut <- second.Lock(ctx, nil) }()
	<-asked
	cancel()
	require.ErrorIs(t, <-timedOut, handler.ErrLockTimeout)

	locked := make(chan error)
	lost := make(chan struct{})
	go func() { locked <- second.Lock(t.Context(), func() { close(lost) }) }()
	require.NoError(t, first.Unlock())
	require.NoError(t, <-locked)
	for lost := false; !lost; {
		for i := range 3 {
			masters.Delete(i, "upload:42")
		}
		lost = second.(*uploadLock).lock.Extend(t.Context(), redlock.MinTTL) != nil
	}
	<-lost
	require.ErrorIs(t, second.Unlock(), redlock.ErrNotHeld)
}
