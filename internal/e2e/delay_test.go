package e2e

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// median makes a measurement several times. A slow machine spoils some of them, and a
// fault of the client most.
func median(times int, measure func() time.Duration) time.Duration {
	var took []time.Duration
	for range times {
		took = append(took, measure())
	}
	slices.Sort(took)
	return took[times/2]
}

// pairTime is how long it takes to acquire and release a lock.
func pairTime(c *redlock.Client, key string) time.Duration {
	began := time.Now()
	if l, err := c.TryAcquire(context.Background(), key, ttl); err == nil {
		_ = l.Release(context.Background())
	}
	return time.Since(began)
}

// tick is the longest of the watchdog.
const tick = 5 * time.Millisecond

// TestSlowDoneDelaysNoCall: callbacks that take 10 ms, too little for another
// goroutine to go on beside them, do not hold up callers who wait for replies.
func TestSlowDoneDelaysNoCall(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		pairs := func() time.Duration {
			medians := make([]time.Duration, 3)
			var callers sync.WaitGroup
			for i := range medians {
				callers.Add(1)
				go func() {
					defer callers.Done()
					medians[i] = median(25, func() time.Duration { return pairTime(r.Client, string(rune('a'+i))) })
				}()
			}
			testkit.Join(t, &callers)
			return slices.Max(medians)
		}
		quiet := pairs()
		unclogged := r.Clog(t)
		var calls atomic.Int64
		const slow = 30
		for range slow {
			require.NoError(t, r.Submit(releaseOp("slow", func(*redlock.Op) { calls.Add(1); time.Sleep(10 * time.Millisecond) })))
		}
		r.Heal(t)
		unclogged()
		loud := pairs()
		t.Logf("a pair takes %v, beside slow callbacks %v", quiet, loud)
		require.Less(t, calls.Load(), int64(slow), "the callbacks ended before the calls")
		require.Less(t, loud, quiet+tick)
	})
}

// TestCallInDone: a blocking call there takes as long as elsewhere.
func TestCallInDone(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		took := make(chan time.Duration, 1)
		pair := median(21, func() time.Duration {
			require.NoError(t, r.Submit(releaseOp("k", func(*redlock.Op) { took <- pairTime(r.Client, "in Done") })))
			return testkit.Get(t, took)
		})
		t.Logf("a pair in Done takes %v", pair)
		require.Less(t, pair, tick)
	})
}

// TestDoneOfABusyProcess: an operation that fails at once is told at once, also
// where other goroutines want all processors.
func TestDoneOfABusyProcess(t *testing.T) {
	r := cluster.New(t, 3, cluster.DefaultTimeouts)
	for _, s := range r.Servers {
		s.Down()
	}
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
	busy := median(41, func() time.Duration {
		began := time.Now()
		require.ErrorIs(t, testkit.Get(t, cluster.Begin(t, r.Client, acquireOp("k"))), redlock.ErrNoQuorum)
		return time.Since(began)
	})
	t.Logf("Done comes after %v", busy)
	require.Less(t, busy, tick)
}

// TestBlockedDoneDelays the others of its batch for about 20 ms: for that long, and
// for the ticks before and behind.
func TestBlockedDoneDelays(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		unblock := make(chan struct{})
		t.Cleanup(func() { close(unblock) })
		delay := median(9, func() time.Duration {
			unclogged := r.Clog(t)
			began, ended := make(chan time.Time, 1), make(chan time.Time, 1)
			require.NoError(t, r.Submit(releaseOp("blocks", func(*redlock.Op) { began <- time.Now(); <-unblock })))
			require.NoError(t, r.Submit(releaseOp("behind", func(*redlock.Op) { ended <- time.Now() })))
			r.Heal(t)
			unclogged()
			from := testkit.Get(t, began)
			return testkit.Get(t, ended).Sub(from)
		})
		t.Logf("the next Done comes after %v", delay)
		require.Less(t, delay, 20*time.Millisecond+3*tick)
	})
}

// TestFailsAtOnceBehindASilentNode: two of three nodes are away and the third is
// silent. An acquire that cannot win fails at once, also behind a release whose
// verdict is known and for which the client waits for the silent node.
func TestFailsAtOnceBehindASilentNode(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		for _, s := range r.Servers[:2] {
			s.Down()
		}
		cluster.AwaitNodesUp(t, r.Client, 1)
		r.Servers[2].Mute()
		require.ErrorIs(t, testkit.Outcome(t, "a release", cluster.Begin(t, r.Client, releaseOp("k", nil))), redlock.ErrNoQuorum)
		failed := median(21, func() time.Duration {
			began := time.Now()
			require.ErrorIs(t, testkit.Try(t, "TryAcquire", func() error {
				_, err := r.TryAcquire(context.Background(), "k", ttl)
				return err
			}), redlock.ErrNoQuorum)
			return time.Since(began)
		})
		t.Logf("it takes %v", failed)
		require.Less(t, failed, tick/2, "it waits for the watchdog")
	})
}
