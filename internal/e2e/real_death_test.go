//go:build linux

package e2e

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/realredis"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// death is a process that is killed, while others wait for the lock "k". In the first the
// goroutine 0 alone works.
type death struct {
	*holders
	admins  []*cluster.Admin
	granted map[string]int64 // by the number of a process, when it had the lock
}

// awaitGrant waits until a process has had the lock.
func (d *death) awaitGrant(t *testing.T, process string) (at int64) {
	testkit.Await(t, "the lock for process "+process, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		at = d.granted[process]
		return at != 0
	})
	return at
}

// awaitQueue waits until so many processes are in the queue of a server.
func (d *death) awaitQueue(t *testing.T, n int) {
	testkit.Await(t, "processes in the queue", func() bool {
		return slices.ContainsFunc(d.admins, func(a *cluster.Admin) bool { return a.Do("ZCARD k:redlock:queue") == ":"+strconv.Itoa(n) })
	})
}

// deaths runs a round with new processes a few times.
func deaths(t *testing.T, round func(d *death, c *redlock.Client) time.Duration) (took []time.Duration) {
	servers := realredis.StartN(t, 5)
	admins, nodes := cluster.NewAdmins(t, servers), cluster.RealAddrs(servers)
	c := cluster.Connect(t, nodes)
	rounds := 3
	if testkit.Long() {
		rounds = 12
	}
	for range rounds {
		d := &death{newHolders(t, nodes, 3), admins, map[string]int64{}}
		d.other = func(line string) {
			words := strings.Fields(line)
			if words[0] == "granted" {
				d.granted[words[1]], _ = strconv.ParseInt(words[2], 10, 64)
			}
		}
		took = append(took, round(d, c))
		d.stop()
	}
	slices.Sort(took)
	t.Log(took)
	return took
}

// waitOnce is what a process of deaths does: it waits for the lock, and gives it back.
func waitOnce(t *testing.T, held func(ctx context.Context, l redlock.Lock)) {
	done := false
	runHolders(t, func(ctx context.Context, c *redlock.Client, me int) {
		if me > 0 || done {
			<-ctx.Done()
			return
		}
		done = true
		l, err := c.Acquire(ctx, "k", time.Second)
		if err != nil {
			return
		}
		say("granted", os.Getenv(holderEnv))
		held(ctx, l)
		_ = l.Release(context.Background())
	})
}

// TestRealHeadDies: the process at the head of a queue is killed, and then the lock is given
// back. The next has it when the ticket of the dead one has expired, the others right
// after it.
func TestRealHeadDies(t *testing.T) {
	if os.Getenv(holdersEnv) != "" {
		waitOnce(t, func(context.Context, redlock.Lock) {})
		return
	}
	t.Parallel()
	took := deaths(t, func(d *death, c *redlock.Client) time.Duration {
		held := cluster.MustAcquire(t, c, "k", ttl)
		for i := range 3 {
			d.start(i)
			d.awaitQueue(t, i+1)
		}
		d.signal(0, syscall.SIGKILL)
		released := machineTime()
		require.NoError(t, held.Release(t.Context()))
		next := d.awaitGrant(t, "1")
		last := d.awaitGrant(t, "2")
		require.Less(t, time.Duration(max(last, next)-released), 1700*time.Millisecond, "for the one behind it")
		return time.Duration(next - released)
	})
	const most, slack = 1200 * time.Millisecond, 600 * time.Millisecond
	require.Less(t, took[0], most)
	require.Less(t, took[len(took)-1], most+slack)
}

// TestRealHolderDies: a holder that keeps its lock alive is killed. The next has the lock
// when it has expired on a quorum of the nodes.
func TestRealHolderDies(t *testing.T) {
	if os.Getenv(holdersEnv) != "" {
		waitOnce(t, func(ctx context.Context, l redlock.Lock) {
			if os.Getenv(holderEnv) == "0" {
				kept, stop := l.KeepAlive(ctx)
				defer stop()
				<-kept.Done()
			}
		})
		return
	}
	t.Parallel()
	took := deaths(t, func(d *death, _ *redlock.Client) time.Duration {
		d.start(0)
		d.awaitGrant(t, "0")
		for i := range 2 {
			d.start(1 + i)
			d.awaitQueue(t, 1+i)
		}
		d.signal(0, syscall.SIGKILL)
		_, _ = d.procs[0].Process.Wait()
		var ends []int64
		for _, a := range d.admins {
			now := machineTime()
			left, err := strconv.Atoi(strings.TrimPrefix(a.Do("PTTL k"), ":"))
			require.NoError(t, err)
			require.Positive(t, left)
			ends = append(ends, now+int64(left)*int64(time.Millisecond))
		}
		slices.Sort(ends)
		next := min(d.awaitGrant(t, "1"), d.awaitGrant(t, "2"))
		return time.Duration(next - ends[2])
	})
	const most, slack = 60 * time.Millisecond, 240 * time.Millisecond
	require.Less(t, took[0], most)
	require.Less(t, took[len(took)-1], most+slack)
}
