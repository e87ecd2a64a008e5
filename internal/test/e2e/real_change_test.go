//go:build linux

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// nextEnv is Config.NextNodes of a process of TestRealChange.
const nextEnv = "REDLOCK_TEST_NEXT_NODES"

const (
	changeTTL   = 2 * time.Second // and MaxTTL
	changePause = 100 * time.Millisecond
)

// TestRealChange is the two changes of conn/OPERATORS.md on real servers, three to five nodes and
// one node replaced, under the load of four processes with 64 goroutines each, while a node is
// killed in each: no two hold a lock at once, and no acquire fails. It shows how long an acquire of
// a free lock takes before, during and after the changes.
func TestRealChange(t *testing.T) {
	if os.Getenv(holdersEnv) != "" {
		changeLoad(t)
		return
	}
	if !testkit.Long() {
		t.Skip("a minute: REDLOCK_LONG=1")
	}
	servers := realredis.StartN(t, 6)
	testkit.Await(t, "all may vote", func() bool {
		c, err := redlock.New(redlock.Config{Nodes: cluster.RealAddrs(servers), MaxTTL: changeTTL})
		require.NoError(t, err)
		defer c.Close()
		return !slices.ContainsFunc(c.Stats().Nodes, func(n redlock.Node) bool { return n.NoVoteFor > 0 })
	})
	list := func(numbers ...int) (addrs []string) {
		for _, i := range numbers {
			addrs = append(addrs, servers[i].Addr())
		}
		return addrs
	}
	r := &changeRun{t: t, took: map[string][]int{}}
	three, five, other := list(0, 1, 2), list(0, 1, 2, 3, 4), list(0, 1, 2, 3, 5)
	r.phase("three nodes")
	t.Setenv(nextEnv, "")
	r.holders = startHolders(t, three, 4, r.hear)
	time.Sleep(5 * time.Second)
	r.phase("three to five")
	r.roll(three, five, func() { require.NoError(t, servers[1].Kill()) })
	require.NoError(t, servers[1].Restart())
	time.Sleep(2 * changeTTL) // it has its vote again, and locks of the first step have ended
	r.roll(five, nil, func() {})
	r.phase("five nodes")
	time.Sleep(5 * time.Second)
	r.phase("one replaced")
	r.roll(five, other, func() { require.NoError(t, servers[4].Kill()) })
	time.Sleep(2 * changeTTL)
	r.roll(other, nil, func() {})
	r.phase("five nodes again")
	time.Sleep(5 * time.Second)
	r.stop()
	n := r.requireApart()
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Empty(t, r.failed)
	t.Logf("%d locks of shared keys", n)
	p99 := map[string]int{}
	for _, phase := range r.phases {
		took := r.took[phase]
		slices.Sort(took)
		p99[phase] = took[len(took)*99/100]
		t.Logf("%-16s %6d acquires of free locks, p50 %5d us, p99 %6d us", phase, len(took), took[len(took)/2], p99[phase])
	}
	floor := float64(p99["five nodes"])
	t.Logf("p99 of that of five nodes that stay: three to five %.2f, one replaced (six) %.2f", float64(p99["three to five"])/floor, float64(p99["one replaced"])/floor)
}

// changeRun is the processes, and their reports.
type changeRun struct {
	*holders
	t      *testing.T
	began  atomic.Int64 // processes that have acquired a lock
	now    atomic.Value // the phase
	phases []string
	took   map[string][]int // us, by phase; guarded by holders.mu, like the next ones
	failed []string
}

func (r *changeRun) phase(name string) {
	r.phases = append(r.phases, name)
	r.now.Store(name)
}

// hear is called for each line that is no lock of a shared key.
func (r *changeRun) hear(_, line string) {
	words := strings.Fields(line)
	switch {
	case len(words) > 1 && words[0] == "took":
		phase := r.now.Load().(string)
		for _, w := range words[1:] {
			if us, err := strconv.Atoi(w); err == nil {
				r.took[phase] = append(r.took[phase], us)
			}
		}
	case len(words) > 1 && words[0] == "began":
		r.began.Add(1)
	case len(words) > 1 && words[0] == "failed":
		r.failed = append(r.failed, r.now.Load().(string)+": "+line)
	}
}

// roll replaces all processes by ones with other lists, one after another, and does something in
// the middle.
func (r *changeRun) roll(nodes, next []string, middle func()) {
	r.nodes = nodes
	r.t.Setenv(nextEnv, strings.Join(next, ","))
	for i := range r.procs {
		if i == len(r.procs)/2 {
			middle()
		}
		old, stdin, began := r.procs[i], r.stdin[i], r.began.Load()
		r.start(i)
		testkit.Await(r.t, "a lock of the new process", func() bool { return r.began.Load() > began })
		require.NoError(r.t, stdin.Close())
		testkit.Await(r.t, "the end of the old process", func() bool { return old.Process.Signal(syscall.Signal(0)) != nil })
	}
}

// changeLoad is a process of 64 goroutines locking keys, mostly one each.
func changeLoad(t *testing.T) {
	var mu sync.Mutex
	var took []string
	flush := func() {
		mu.Lock()
		defer mu.Unlock()
		if len(took) > 0 {
			_, _ = os.Stdout.WriteString("took " + strings.Join(took, " ") + "\n")
		}
		took = took[:0]
	}
	var began sync.Once
	var serial atomic.Int64
	one := func(ctx context.Context, c *redlock.Client, me int) {
		time.Sleep(rand.N(2 * changePause))
		limited, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		key, isShared := fmt.Sprintf("own %d %d", os.Getpid(), me), rand.IntN(8) == 0
		if isShared {
			key = fmt.Sprint("shared-", rand.IntN(16))
		}
		start := time.Now()
		l, err := c.Acquire(limited, key, changeTTL)
		us := time.Since(start).Microseconds()
		if err != nil {
			say("failed", strconv.Quote(err.Error()))
			return
		}
		began.Do(func() { say("began", "it") })
		if isShared {
			hold(func() bool { return l.Remaining() > 0 }, fmt.Sprintf("%d.%d", os.Getpid(), serial.Add(1)), 0, rand.N(10*time.Millisecond), key)
		} else {
			mu.Lock()
			took = append(took, strconv.FormatInt(us, 10))
			mu.Unlock()
		}
		_ = l.Release(context.Background())
		if me == 0 {
			flush()
		}
	}
	runHolders(t, func(ctx context.Context, c *redlock.Client, me int) {
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for ctx.Err() == nil {
					one(ctx, c, 8*me+i)
				}
			})
		}
		all.Wait()
	}, func(c *redlock.Config) {
		c.MaxTTL = changeTTL
		if next := os.Getenv(nextEnv); next != "" {
			c.NextNodes = strings.Split(next, ",")
		}
	})
	flush()
}
