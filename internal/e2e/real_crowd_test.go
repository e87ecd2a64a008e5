//go:build unix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/realredis"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// cpuTime is what this process has used.
func cpuTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

var processed = regexp.MustCompile(`total_commands_processed:(\d+)`)

// commands is how many the servers have processed, each.
func commands(t *testing.T, admins []*cluster.Admin) (each []int) {
	for _, a := range admins {
		n, err := strconv.Atoi(processed.FindStringSubmatch(a.Text("INFO stats"))[1])
		require.NoError(t, err)
		each = append(each, n)
	}
	return each
}

// TestRealCrowd: ten thousand callers that wait for as many locks, which another process
// holds, cost little while nothing happens. It must be alone in its process.
func TestRealCrowd(t *testing.T) {
	keys, settled, window := 1_000, time.Second, 3*time.Second
	if testkit.Long() {
		keys, settled, window = 10_000, 10*time.Second, 10*time.Second
	}
	servers := realredis.StartN(t, 5)
	admins, nodes := cluster.NewAdmins(t, servers), cluster.RealAddrs(servers)
	holder, c := cluster.Connect(t, nodes), cluster.Connect(t, nodes, usual)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer testkit.Join(t, &all)
	defer cancel()
	for i := range keys {
		key := fmt.Sprint("k", i)
		cluster.MustAcquire(t, holder, key, time.Hour)
		all.Add(1)
		go func() {
			defer all.Done()
			if _, err := c.Acquire(ctx, key, ttl); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}()
	}
	testkit.Await(t, "in line", func() bool { return c.Stats().InLine == keys })
	awaitPassed(t, settled)

	before, start, cpu := commands(t, admins), time.Now(), cpuTime(t)
	time.Sleep(window) // and not by polling, which would be measured too
	used, took, after := cpuTime(t)-cpu, time.Since(start), commands(t, admins)
	share := float64(used) / float64(took)
	var rates []int
	for i := range after {
		rates = append(rates, int(float64(after[i]-before[i])/took.Seconds()))
	}
	t.Logf("%d waiters: %.1f %% of a core, %d commands/s at each node", keys, 100*share, rates)
	if !testkit.Race {
		require.Less(t, share, 0.04)
	}
}
