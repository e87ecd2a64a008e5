//go:build !race

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// onOtherProcesses runs a test against masters whose allocations are not ours: fake ones in a child
// process, and real ones where there are any.
func onOtherProcesses(t *testing.T, test func(t *testing.T, connect func(...func(*redlock.Config)) *redlock.Client)) {
	onBothPaths := func(t *testing.T, nodes []string) {
		testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
			test(t, func(change ...func(*redlock.Config)) *redlock.Client {
				return cluster.Connect(t, nodes, append(change, cluster.Portable(portable))...)
			})
		})
	}
	t.Run("fake", func(t *testing.T) { onBothPaths(t, cluster.Masters(t)) })
	t.Run("real", func(t *testing.T) {
		onBothPaths(t, cluster.RealAddrs(realredis.StartN(t, 3, realredis.Options{Password: os.Getenv(cluster.PasswordEnv)})))
	})
}

// TestAllocations: none, for each usual end of an operation. Stats makes its list, and a hook gets texts of keys.
func TestAllocations(t *testing.T) {
	var attempts, votes, lost atomic.Int64
	onOtherProcesses(t, func(t *testing.T, connect func(...func(*redlock.Config)) *redlock.Client) {
		for name, hooks := range map[string]redlock.Hooks{"plain": {}, "hooks": {
			Attempt:  func(redlock.Attempt) { attempts.Add(1) },
			Vote:     func(redlock.Vote) { votes.Add(1) },
			LockLost: func(string, error) { lost.Add(1) },
		}} {
			c := connect(func(c *redlock.Config) { c.Hooks = hooks })
			testAllocations(t, c, name == "hooks")
			testAllocations(t, c.With(redlock.Options{Wait: ttl, Attempts: 3, Name: "order-7"}), name == "hooks")
			require.NoError(t, c.Close())
		}
	})
	require.Positive(t, attempts.Load())
	require.Positive(t, votes.Load())
	require.Zero(t, lost.Load())
}

func testAllocations(t *testing.T, c *redlock.Client, hooked bool) {
	ctx, cancel := context.WithCancel(context.Background()) // with a Done to wait for
	defer cancel()
	keys := make([]string, 64)
	for i := range keys {
		keys[i] = fmt.Sprint("key ", i)
	}
	n := 0
	held := cluster.MustAcquire(t, c, "held", ttl)
	done := make(chan struct{}, 1)
	op := &redlock.Op{Key: []byte("op"), TTL: ttl, Done: func(*redlock.Op) { done <- struct{}{} }}
	submit := func(kind redlock.OpKind) error {
		op.Kind = kind
		if err := c.Submit(op); err != nil {
			return err
		}
		<-done
		return op.Err()
	}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, call := range map[string]struct {
		texts float64 // of keys, for a hook: one of each Op, and one of a lease
		most  float64
		f     func()
	}{
		"Acquire, Release": {texts: 1, f: func() {
			n++
			l, err := c.Acquire(ctx, keys[n%len(keys)], ttl)
			must(err)
			must(l.Release(ctx))
		}},
		"TryAcquire, Release, without an end": {texts: 1, f: func() { must(pair(c, "endless", ttl)) }},
		"TryAcquire, ReleaseAsync": {texts: 1, f: func() {
			l, err := c.TryAcquire(ctx, "async", ttl)
			must(err)
			l.ReleaseAsync()
		}},
		"refused TryAcquire": {f: func() {
			if _, err := c.TryAcquire(ctx, "held", ttl); err != redlock.ErrTaken {
				t.Fatal(err)
			}
		}},
		"Extend":    {texts: 1, f: func() { must(held.Extend(ctx, ttl)) }},
		"Remaining": {f: func() { _ = held.Remaining() }},
		"Stats":     {most: 1, f: func() { _ = c.Stats() }},
		"Submit": {texts: 6, f: func() {
			for _, op.Within = range []time.Duration{time.Minute, 0} {
				must(submit(redlock.OpAcquire))
				must(submit(redlock.OpExtend))
				must(submit(redlock.OpRelease))
			}
		}},
		"Cancel": {texts: 2, f: func() {
			op.Kind = redlock.OpAcquire
			must(c.Submit(op))
			if !c.Cancel(op) { // it has ended already
				<-done
				must(submit(redlock.OpRelease))
			}
		}},
		"refused Submit": {texts: 1, f: func() {
			op.SetToken(foreign)
			if err := submit(redlock.OpRelease); err != redlock.ErrNotHeld {
				t.Fatal(err)
			}
		}},
	} {
		if hooked {
			call.most += call.texts
		}
		requireBest(t, name, call.most, func() float64 { return testing.AllocsPerRun(100, call.f) })
	}
	must(held.Release(ctx))
}

// TestAllocationsUnderLoad: with 64 goroutines it is less than one for ten pairs, on every goroutine.
func TestAllocationsUnderLoad(t *testing.T) {
	const goroutines, pairs = 64, 200
	onOtherProcesses(t, func(t *testing.T, connect func(...func(*redlock.Config)) *redlock.Client) {
		c := connect()
		requireBest(t, "pair", 0.1, func() float64 { // every buffer has its size after the first time
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			var wg sync.WaitGroup
			for g := range goroutines {
				wg.Go(func() {
					key := fmt.Sprint("load ", g)
					for range pairs {
						assert.NoError(t, pair(c, key, ttl))
					}
				})
			}
			wg.Wait()
			runtime.ReadMemStats(&after)
			return float64(after.Mallocs-before.Mallocs) / (goroutines * pairs)
		})
	})
}

// requireBest measures until the steady state is seen: while a machine keeps one of the masters
// from running, batches waiting for its replies pile up, and new ones are made.
func requireBest(t *testing.T, name string, most float64, measure func() float64) {
	t.Helper()
	var all []float64
	for range 20 {
		n := measure()
		if n <= most {
			return
		}
		all = append(all, n)
	}
	require.Fail(t, "it allocates", "%s: %v, want at most %v: calls of one key use memory again, of the call, the lease or the batch (go test -memprofile shows what does not)", name, all, most)
}

// TestAllocationsFenced: none for a fenced lock, also where the clock of another client is ahead
// and each first attempt is refused for its number.
func TestAllocationsFenced(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		nodes := cluster.Masters(t)
		connect := func(ahead time.Duration) *redlock.Client {
			return cluster.Connect(t, nodes, cluster.Portable(portable), func(c *redlock.Config) {
				c.Fenced, c.MaxTTL = true, fenceTTL
				knobs.Of(c).FenceClock = func() time.Time { return time.Now().Add(ahead) }
			})
		}
		c, fast := connect(0), connect(time.Hour)
		require.NoError(t, c.InitFencing(t.Context()))
		require.NoError(t, pair(fast, "ahead", fenceTTL))
		for _, key := range []string{"k", "ahead"} {
			requireBest(t, key, 0, func() float64 {
				return testing.AllocsPerRun(100, func() {
					if err := pair(c, key, fenceTTL); err != nil && !errors.Is(err, redlock.ErrExpired) { // a busy machine: measure again
						t.Fatal(err)
					}
				})
			})
		}
	})
}
