//go:build linux

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
	"github.com/redlock-go/redlock/quorum"
)

// longestHold is MaxTTL of fenced processes.
const longestHold = 600 * time.Millisecond

// fencedHolder is the configuration of client i: by clocks that are right, an hour ahead and behind, and that jump;
// with hand-over and without; with the quarantine after restarts and without.
func fencedHolder(i int) func(*redlock.Config) {
	return func(c *redlock.Config) {
		c.Fenced, c.MaxTTL, c.NoHandOver, knobs.Of(c).TrustRestarts = true, longestHold, i%2 == 1, i >= 2
		knobs.Of(c).FenceClock = func() time.Time {
			off := []time.Duration{0, time.Hour, -time.Hour, time.Duration(rand.IntN(3)-1) * time.Hour}[i]
			return time.Now().Add(off)
		}
	}
}

// fencedFleet is servers, and what was done to them.
type fencedFleet struct {
	t       *testing.T
	servers []*realredis.Server
	faults  map[string]int
}

func (f *fencedFleet) admin(i int) *cluster.Admin { return cluster.NewAdmin(f.t, f.servers[i]) }

// awaitVotes waits until all nodes have their vote, by their own word, and returns the time it took.
func (f *fencedFleet) awaitVotes(within time.Duration) time.Duration {
	f.t.Helper()
	start := time.Now()
	for i := range f.servers {
		admin := f.admin(i)
		_, rest, _ := strings.Cut(admin.Text("INFO server"), "run_id:")
		run := strings.Fields(rest)[0]
		testkit.AwaitFor(f.t, max(time.Millisecond, within-time.Since(start)), fmt.Sprint("a vote of node ", i), func() bool {
			marker := admin.Do("ZRANGEBYSCORE redlock:fence -1 -1")
			return strings.Contains(marker, "active:") && strings.Contains(marker, run)
		})
	}
	return time.Since(start)
}

// forget has a node lose its tokens, in one of several ways.
func (f *fencedFleet) forget(i int) {
	s := f.servers[i]
	switch rand.IntN(3) {
	case 0:
		f.faults["FLUSHALL"]++
		f.admin(i).Must("FLUSHALL")
	case 1:
		f.faults["set deleted"]++
		f.admin(i).Do("DEL redlock:fence")
	default:
		f.faults["kill -9"]++
		require.NoError(f.t, s.Kill())
		time.Sleep(rand.N(longestHold / 4))
		require.NoError(f.t, s.Restart())
	}
}

// standStill stops servers for a while.
func (f *fencedFleet) standStill(servers ...*realredis.Server) {
	for _, s := range servers {
		f.faults["SIGSTOP of a server"]++
		require.NoError(f.t, s.Stop())
	}
	time.Sleep(rand.N(2 * longestHold))
	for _, s := range servers {
		require.NoError(f.t, s.Cont())
	}
}

// TestRealFence: four processes of fenced clients want keys, several, and any of several, with clocks an hour off,
// while servers lose their data, and servers and processes stand still. Tokens grow with the grants. Forgetful nodes
// get their vote back; where too many have forgotten, the clients report it until an operator has given it to them.
func TestRealFence(t *testing.T) {
	if os.Getenv(holdersEnv) != "" {
		me := testkit.Must(strconv.Atoi(os.Getenv(holderEnv)))(t)
		var turns atomic.Int64
		runHolders(t, func(ctx context.Context, c *redlock.Client, _ int) {
			own, cancel := context.WithTimeout(ctx, 2*longestHold)
			defer cancel()
			contend(own, c, fmt.Sprint(me), int(turns.Add(1)), longestHold/2+rand.N(longestHold/2))
		}, fencedHolder(me))
		return
	}
	t.Parallel()
	kinds := []realredis.Kind{realredis.Usual}
	for _, kind := range realredis.Kinds()[1:] {
		if _, err := kind.Command(); err == nil {
			kinds = append(kinds, kind)
		}
	}
	if !testkit.Long() {
		t.Run("mixed", func(t *testing.T) { realFence(t, time.Second, kinds...) })
		return
	}
	for _, kind := range kinds { // one after another
		t.Run(kind.String(), func(t *testing.T) { realFence(t, time.Minute, kind) })
	}
}

func realFence(t *testing.T, long time.Duration, kinds ...realredis.Kind) {
	f := &fencedFleet{t: t, faults: map[string]int{}}
	for i := range 5 {
		f.servers = append(f.servers, realredis.Start(t, realredis.Options{Kind: kinds[i%len(kinds)]}))
	}
	nodes := cluster.RealAddrs(f.servers)
	operator := cluster.Connect(t, nodes, fencedHolder(0))
	require.ErrorContains(t, cluster.IsReady(operator), "5 of 5 nodes failed")
	require.NoError(t, testkit.Try(t, "InitFencing", func() error { return operator.InitFencing(t.Context()) }))
	require.NoError(t, testkit.Try(t, "Ready", func() error { return operator.Ready(t.Context()) }))
	forgotten := map[string]bool{} // processes with such a report
	h := startHolders(t, nodes, 4, func(process, line string) {
		if strings.HasPrefix(line, "forgotten") {
			forgotten[process] = true
		}
	})

	quarantine := longestHold + quorum.Drift(longestHold)
	slack := testkit.Patience // the machine may be busy
	if testkit.Long() {
		slack = 2 * time.Second
	}
	var longest time.Duration
	for start := time.Now(); time.Since(start) < long; h.awaitProgress() {
		at := rand.IntN(5)
		of := func(n int) (some []int) {
			for i := range n {
				some = append(some, (at+i)%5)
			}
			return some
		}
		switch i := rand.IntN(10); {
		case i < 5: // one or two forget, perhaps again before their vote is back
			some := of(1 + rand.IntN(2))
			for range 1 + rand.IntN(2) {
				for _, i := range some {
					f.forget(i)
				}
				time.Sleep(rand.N(longestHold / 2))
			}
			if rand.IntN(2) == 0 {
				f.standStill(f.servers[(at+2)%5])
			}
			f.awaitVotes(2*quarantine + slack)
			for _, i := range some { // now there is no older quarantine
				f.forget(i)
			}
			longest = max(longest, f.awaitVotes(quarantine+slack))
		case i < 7:
			var some []*realredis.Server
			for _, i := range of(1 + rand.IntN(3)) {
				some = append(some, f.servers[i])
			}
			f.standStill(some...)
		default:
			f.faults["SIGSTOP of a client"]++
			p := rand.IntN(4)
			h.signal(p, syscall.SIGSTOP)
			time.Sleep(rand.N(2 * longestHold))
			h.signal(p, syscall.SIGCONT)
		}
	}

	f.awaitVotes(2*quarantine + slack)
	h.mu.Lock()
	clear(forgotten)
	h.mu.Unlock()
	for i := range 3 { // all are down at once: the first must not get its vote back from the last
		require.NoError(t, f.servers[i].Kill())
	}
	for i := range 3 {
		require.NoError(t, f.servers[i].Restart())
	}
	testkit.Await(t, "ErrForgotten in all processes", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(forgotten) == 4
	})
	require.ErrorIs(t, cluster.IsReady(operator), redlock.ErrNoQuorum)
	time.Sleep(quarantine)                                         // no earlier attempt is under way
	testkit.Within(t, testkit.Patience, "RecoverFencing", func() { // it waits for the longest TTL, behind the recovery by clients
		assert.NoError(t, operator.RecoverFencing(t.Context(), h.largestToken()))
	})
	f.awaitVotes(slack)
	h.awaitProgress()
	h.stop()
	t.Logf("%d locks, %v; the votes were back after %v at most, a quarantine is %v", h.requireApart(), f.faults, longest, quarantine)
}
