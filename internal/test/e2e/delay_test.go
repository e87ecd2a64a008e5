package e2e

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// tick is the longest of the watchdog.
const tick = 5 * time.Millisecond

// pairTime is how long it takes to acquire and release a lock.
func pairTime(c *redlock.Client, key string) time.Duration {
	began := time.Now()
	if l, err := c.TryAcquire(context.Background(), key, ttl); err == nil {
		_ = l.Release(context.Background())
	}
	return time.Since(began)
}

// TestSlowDoneDelaysNoCall: callbacks that take 10 ms, too little for another goroutine to go on
// beside them, do not hold up callers waiting for replies. Nor is a call in a callback slow.
func TestSlowDoneDelaysNoCall(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		unclogged := r.Clog(t)
		var calls atomic.Int64
		const slow = 30
		for range slow {
			require.NoError(t, r.Submit(releaseOp("slow", func(*redlock.Op) { calls.Add(1); time.Sleep(10 * time.Millisecond) })))
		}
		r.Heal(t)
		unclogged()
		for range 10 {
			require.Less(t, pairTime(r.Client, "k"), tick)
		}
		require.Less(t, calls.Load(), int64(slow), "the callbacks ended before the calls")

		took := make(chan time.Duration, 1)
		require.NoError(t, r.Submit(releaseOp("k", func(*redlock.Op) { took <- pairTime(r.Client, "in Done") })))
		require.Less(t, testkit.Get(t, took), tick)
	})
}

// TestDoneOfABusyProcess: an operation that fails at once is reported at once, also
// where other goroutines want all processors.
func TestDoneOfABusyProcess(t *testing.T) {
	r := cluster.New(t, 3, cluster.DefaultTimeouts)
	r.Servers.Down()
	cluster.AwaitNodesUp(t, r.Client, 0)
	var stop atomic.Bool
	defer stop.Store(true)
	for range 2 * runtime.GOMAXPROCS(0) {
		go func() {
			for !stop.Load() {
				runtime.Gosched() // it never keeps its processor for long
			}
		}()
	}
	began := time.Now()
	for range 40 {
		require.ErrorIs(t, testkit.Get(t, cluster.Begin(t, r.Client, acquireOp("k"))), redlock.ErrNoQuorum)
	}
	require.Less(t, time.Since(began), testkit.Promptly)
}

// TestBlockedDoneDelays the others of its batch for about 20 ms: for this long, and for the ticks
// before and after it.
func TestBlockedDoneDelays(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		unblock := make(chan struct{})
		t.Cleanup(func() { close(unblock) })
		unclogged := r.Clog(t)
		began, ended := make(chan time.Time, 1), make(chan time.Time, 1)
		require.NoError(t, r.Submit(releaseOp("blocks", func(*redlock.Op) { began <- time.Now(); <-unblock })))
		require.NoError(t, r.Submit(releaseOp("behind", func(*redlock.Op) { ended <- time.Now() })))
		r.Heal(t)
		unclogged()
		from := testkit.Get(t, began)
		require.Less(t, testkit.Get(t, ended).Sub(from), 20*time.Millisecond+3*tick)
	})
}

// TestFailsAtOnceBehindASilentNode: two of three nodes are away and the third is silent. An acquire
// that cannot win fails at once, also after a release with a known verdict and an answer still to
// come from the silent node.
func TestFailsAtOnceBehindASilentNode(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		r.Servers[:2].Down()
		cluster.AwaitNodesUp(t, r.Client, 1)
		r.Servers[2].Mute()
		require.ErrorIs(t, testkit.Outcome(t, "a release", cluster.Begin(t, r.Client, releaseOp("k", nil))), redlock.ErrNoQuorum)
		began := time.Now()
		_, err := r.TryAcquire(context.Background(), "k", ttl)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.Less(t, time.Since(began), tick/2, "it waits for the watchdog")
	})
}
