//go:build linux

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/realredis"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// TestRealHold: four processes of eight goroutines each run functions with few locks, while
// masters and processes are stopped and killed, and callers give up. At no moment have two
// functions of one key a context that is alive.
func TestRealHold(t *testing.T) {
	if os.Getenv(holdersEnv) != "" {
		turns := make([]int, 8)
		runHolders(t, func(ctx context.Context, c *redlock.Client, me int) {
			turns[me]++
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			if rand.IntN(8) == 0 {
				time.AfterFunc(time.Duration(rand.IntN(400))*time.Millisecond, cancel)
			}
			long := time.Duration(rand.IntN(60)) * time.Millisecond
			if rand.IntN(2) == 0 {
				long *= 20 // several TTLs
			}
			key := fmt.Sprint("k", rand.IntN(4))
			_ = c.Do(ctx, key, brief, func(ctx context.Context) error {
				return hold(ctx, fmt.Sprintf("%d.%d.%d", os.Getpid(), me, turns[me]), long, key)
			})
		})
		return
	}
	t.Parallel()
	servers := realredis.StartN(t, 5, realredis.Options{Persistent: true})
	h := startHolders(t, cluster.PersistentAddrs(servers), 4)
	for i := range 4 {
		testkit.Await(t, "each to work", func() bool { return h.turnsOf(i) > 0 })
	}
	total := 4 * time.Second
	if testkit.Long() {
		total = 90 * time.Second
	}
	pause := func(most time.Duration) { awaitPassed(t, time.Duration(rand.Int64N(int64(most)))) }
	for start := time.Now(); time.Since(start) < total; {
		switch i := rand.IntN(10); {
		case i < 4: // at times a majority
			stopped := servers[:1+rand.IntN(3)]
			for _, s := range stopped {
				require.NoError(t, s.Stop())
			}
			pause(2 * brief)
			for _, s := range stopped {
				require.NoError(t, s.Cont())
			}
		case i < 7:
			p := rand.IntN(4)
			h.signal(p, syscall.SIGSTOP)
			pause(4 * brief)
			h.signal(p, syscall.SIGCONT)
		case i < 8:
			h.kill(rand.IntN(4))
		default:
			s := servers[3+rand.IntN(2)]
			require.NoError(t, s.Kill())
			pause(brief)
			require.NoError(t, s.Restart())
		}
		pause(brief / 2)
	}
	before := []int{h.turnsOf(0), h.turnsOf(1), h.turnsOf(2), h.turnsOf(3)}
	for i := range 4 {
		testkit.Await(t, "each to go on", func() bool { return h.turnsOf(i) > before[i] })
	}
	h.stop()
	h.requireApart()
	n := 0
	for _, times := range h.times {
		n += len(times)
	}
	t.Log(n, "locks held")
}
