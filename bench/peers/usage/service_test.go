package usage

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/go-redsync/redsync/v4"
	redsyncpool "github.com/go-redsync/redsync/v4/redis"
	redsyncgoredis "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn/conntest"
)

// The service that is tested, by ours and by redsync: busy if another makes the report.

var errBusy = errors.New("another process makes the report")

func report(ctx context.Context, client *redlock.Client) error {
	err := client.TryDo(ctx, "report", 10*time.Second, func(context.Context) error { return nil })
	if errors.Is(err, redlock.ErrTaken) {
		return errBusy
	}
	return err
}

func redsyncReport(ctx context.Context, locks *redsync.Redsync) error {
	mutex := locks.NewMutex("report", redsync.WithExpiry(10*time.Second))
	err := mutex.TryLockContext(ctx)
	var taken *redsync.ErrTaken
	if errors.As(err, &taken) {
		return errBusy
	}
	if err == nil {
		_, err = mutex.UnlockContext(ctx)
	}
	return err
}

// TestService: busy, free, no quorum.
func TestService(t *testing.T) {
	masters := conntest.Start(t, 3)
	client, err := redlock.New(redlock.Config{Nodes: masters.Addrs(), NodeTimeout: time.Second})
	require.NoError(t, err)
	defer client.Close()
	other, err := client.Acquire(t.Context(), "report", 10*time.Second)
	require.NoError(t, err)
	require.Equal(t, errBusy, report(t.Context(), client))
	require.NoError(t, other.Release(t.Context()))
	require.NoError(t, report(t.Context(), client))
	masters.Stop(0)
	masters.Stop(1)
	require.ErrorIs(t, report(t.Context(), client), redlock.ErrNoQuorum)
}

// TestRedsyncService is the same of redsync, on fakes of another module.
func TestRedsyncService(t *testing.T) {
	var masters []*miniredis.Miniredis
	var pools []redsyncpool.Pool
	for range 3 {
		master := miniredis.RunT(t)
		client := redis.NewClient(&redis.Options{Addr: master.Addr()})
		defer client.Close()
		masters, pools = append(masters, master), append(pools, redsyncgoredis.NewPool(client))
	}
	locks := redsync.New(pools...)
	other := locks.NewMutex("report", redsync.WithExpiry(10*time.Second))
	require.NoError(t, other.LockContext(t.Context()))
	require.Equal(t, errBusy, redsyncReport(t.Context(), locks))
	_, err := other.UnlockContext(t.Context())
	require.NoError(t, err)
	require.NoError(t, redsyncReport(t.Context(), locks))
	masters[0].Close()
	masters[1].Close()
	var sad *redsync.RedisError
	require.ErrorAs(t, redsyncReport(t.Context(), locks), &sad)
}
