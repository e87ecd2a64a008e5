package redlock_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
)

// TestDefectRepeatedExtend: two extends of one lock are in flight at once, and
// the masters have forgotten the script for the first, but know it for the
// second. If both are said to have succeeded, the second one's TTL holds.
func TestDefectRepeatedExtend(t *testing.T) {
	const first, second = 10 * time.Minute, 30 * time.Minute
	r := newBoundRig(t, startN(t, 3))
	for _, s := range r.servers {
		s.Delay(20 * time.Millisecond) // for a window of more than one batch
	}
	for range 3 {
		pair(t, r.Client, "measured")
	}
	acquire := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte("k"), TTL: ttl}
	require.NoError(t, soon(t, "the acquire", submitted(t, r.Client, acquire)))
	awaitSoon(t, bound, "on all nodes", func() bool { return r.holders("k") == 3 })
	quiet(t, r.Client)

	arrived := make(chan error, 3) // the first, at each master
	for _, s := range r.servers {
		times := 0
		s.OnCommand(func(_ int64, args []string) {
			switch {
			case args[0] != "EVALSHA" || !slices.Contains(args, "k"):
			case slices.Contains(args, "600000") && times == 0:
				s.FlushScripts()
				times++
				arrived <- nil
			case slices.Contains(args, "1800000"):
				s.LoadScripts()
			}
		})
	}
	extend := func(ttl time.Duration) <-chan error {
		return submitted(t, r.Client, &redlock.Op{Kind: redlock.OpExtend, Key: []byte("k"), TTL: ttl, Token: acquire.Token})
	}
	one := extend(first)
	for range r.servers {
		require.NoError(t, soon(t, "the first extend", arrived))
	}
	two := extend(second)
	errOne, errTwo := soon(t, "the first extend", one), soon(t, "the second extend", two)
	quiet(t, r.Client)
	require.NoError(t, errTwo, "the masters know the script")
	long := 0
	for _, s := range r.servers {
		if s.TTL("k") > first {
			long++
		}
	}
	require.GreaterOrEqual(t, long, 2, "the first came behind the second; it says: %v", errOne)
}

// TestDefectOverlappingExtends: a lock that two goroutines keep extending does
// not expire, however their extends overlap.
func TestDefectOverlappingExtends(t *testing.T) {
	const short = 300 * time.Millisecond
	onBothPaths(t, func(t *testing.T, portable bool) {
		r := newBoundRig(t, startN(t, 3), portably(portable))
		for _, s := range r.servers {
			s.Delay(5 * time.Millisecond)
		}
		l := mustAcquire(t, r.Client, "k", short)
		began := time.Now()
		var wg sync.WaitGroup
		var mu sync.Mutex
		var failed []error
		longest := time.Duration(0) // that one of them took; a machine that stands still proves nothing
		for range 2 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for time.Since(began) < 1500*time.Millisecond {
					before := time.Now()
					err := l.Extend(context.Background(), short)
					mu.Lock()
					longest = max(longest, time.Since(before))
					if err != nil {
						failed = append(failed, err)
					}
					mu.Unlock()
					if err != nil {
						return
					}
				}
			}()
		}
		require.NoError(t, soon(t, "the extends", start(func() error { wg.Wait(); return nil })))
		require.Empty(t, failed, "after %v; the longest extend took %v", time.Since(began), longest)
		require.Positive(t, l.Remaining())
	})
}
