package main

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncpool "github.com/go-redsync/redsync/v4/redis"
	redsyncgoredis "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
)

// TestRedsyncBesideALine: while a program moves to redlock, copies that use redsync, with its
// defaults, have turns beside goroutines of ours that take the lock without end: where a machine
// does nothing else (REDLOCK_LONG=1) one every two seconds on average, and none of its calls gives
// up. Package histories has the same, and more, in virtual time.
func TestRedsyncBesideALine(t *testing.T) {
	const name, section, longest, every, window = "orders:42", time.Millisecond, 3 * time.Second, 2 * time.Second, time.Minute
	long := os.Getenv("REDLOCK_LONG") == "1" // else two turns will do, and a few of ours
	nodes := servers(t, 5)
	client, err := redlock.New(redlock.Config{Nodes: nodes})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	var pools []redsyncpool.Pool
	for _, addr := range nodes {
		pools = append(pools, redsyncgoredis.NewPool(goRedis(t, addr)))
	}
	ctx, cancel := context.WithTimeout(t.Context(), window)
	defer cancel()
	var line sync.WaitGroup
	var ours atomic.Int64
	for range 4 {
		line.Add(1)
		go func() {
			defer line.Done()
			for ctx.Err() == nil {
				if lock, err := client.Acquire(ctx, name, 8*time.Second); err == nil {
					ours.Add(1)
					time.Sleep(section)
					_ = lock.Release(context.Background())
				}
			}
		}()
	}
	mutex := redsync.New(pools...).NewMutex(name)
	var theirs, gaveUp int
	var interval time.Duration // the longest between two grants
	for last := time.Now(); ctx.Err() == nil; {
		switch err := mutex.LockContext(ctx); {
		case err == nil:
			theirs++
			if !long && theirs >= 2 && ours.Load() > int64(theirs) { // theirs may be first, before a line is there
				cancel()
			}
			interval = max(interval, time.Since(last))
			last = time.Now()
			time.Sleep(section)
			_, _ = mutex.UnlockContext(context.Background())
		case ctx.Err() == nil:
			gaveUp++
		default:
			interval = max(interval, time.Since(last))
		}
	}
	line.Wait()
	t.Logf("redsync: %d grants in %v at most, %d calls gave up, longest interval %v; ours beside it %d grants",
		theirs, window, gaveUp, interval.Round(time.Millisecond), ours.Load())
	require.Greater(t, ours.Load(), int64(theirs))
	require.GreaterOrEqual(t, theirs, 2)
	if long {
		require.Zero(t, gaveUp)
		require.LessOrEqual(t, interval, longest)
		require.GreaterOrEqual(t, theirs, int(window/every))
	}
}
