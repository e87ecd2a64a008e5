//go:build linux

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// waits is the processes' reports of their waits: when each goroutine was granted locks, and what
// has gone wrong. Goroutines are named by the id of their process and a number.
type waits struct {
	granted map[string][]int64
	wrong   []string
}

func (w *waits) hear(_, line string) {
	var word, who string
	var at int64
	if n, _ := fmt.Sscan(line, &word, &who, &at); n != 3 {
		return
	}
	switch word {
	case "granted":
		w.granted[who] = append(w.granted[who], at)
	case "wrong":
		w.wrong = append(w.wrong, line)
	}
}

// longestHold is MaxTTL of fenced processes.
const longestHold = 2 * brief

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

// mixedServers starts servers of all available kinds, in one quorum.
func mixedServers(t *testing.T, n int, persistent bool) (servers []*realredis.Server) {
	var kinds []realredis.Kind
	for _, kind := range realredis.Kinds() {
		if _, err := kind.Command(); err == nil {
			kinds = append(kinds, kind)
		} else {
			t.Log("without one of them:", err)
		}
	}
	if len(kinds) == 0 {
		kinds = append(kinds, realredis.Usual) // StartN gives the reason
	}
	for i := range n {
		servers = append(servers, realredis.StartN(t, 1, realredis.Options{Kind: kinds[i%len(kinds)], Persistent: persistent})...)
	}
	return servers
}

// TestRealWaits: four processes of several goroutines each want three keys and three permits, while servers are
// stopped, killed and started anew, processes are stopped and killed, connections are cut, and some
// callers give up. At no moment do two hold a key, unless they share it. When the faults end all are served.
//
// The clients of the second run are fenced, with clocks an hour off, and servers lose their data, one at a time: each gets
// its vote back. Tokens grow with the grants.
func TestRealWaits(t *testing.T) {
	for name, isFenced := range map[string]bool{"plain": false, "fenced": true} {
		t.Run(name, func(t *testing.T) { realWaits(t, isFenced) })
	}
}

func realWaits(t *testing.T, isFenced bool) {
	if me := os.Getenv(holderEnv); me != "" {
		ttl, change := func() time.Duration { return brief }, func(c *redlock.Config) { c.NoHandOver = me == "3" }
		if isFenced {
			ttl, change = func() time.Duration { return brief + rand.N(brief) }, fencedHolder(int(me[0]-'0'))
		}
		turns := make([]int, perProcess())
		runHolders(t, func(ctx context.Context, c *redlock.Client, me int) {
			turns[me]++
			own := ctx
			if rand.IntN(8) == 0 {
				var cancel context.CancelFunc
				own, cancel = context.WithTimeout(ctx, rand.N(100*time.Millisecond))
				defer cancel()
			}
			contend(own, c, fmt.Sprintf("%d.%d", os.Getpid(), me), turns[me], ttl())
		}, change)
		return
	}
	t.Parallel()
	servers := mixedServers(t, 5, !isFenced)
	nodes := cluster.RealAddrs(servers)
	for i, addr := range nodes {
		if !isFenced {
			nodes[i] = "redis://" + addr + "?persistent=yes"
		}
	}
	if isFenced {
		operator := cluster.Connect(t, nodes, fencedHolder(0))
		require.NoError(t, testkit.Try(t, "InitFencing", func() error { return operator.InitFencing(t.Context()) }))
	}
	w := &waits{granted: map[string][]int64{}}
	h := startHolders(t, nodes, 4, w.hear)
	total := time.Second
	if testkit.Long() {
		total = 90 * time.Second
	}
	faults := harm(t, servers, h, total, isFenced)
	end := machineTime()

	goroutines := func() (names []string) {
		for _, cmd := range h.procs {
			for me := range perProcess() {
				names = append(names, fmt.Sprintf("%d.%d", cmd.Process.Pid, me))
			}
		}
		return names
	}
	const rounds = 3 // all places in queues have been taken anew then
	var served time.Duration
	testkit.Await(t, "all to be served", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		served = 0
		for _, name := range goroutines() {
			since := slices.DeleteFunc(slices.Clone(w.granted[name]), func(at int64) bool { return at < end })
			if len(since) < rounds {
				return false
			}
			served = max(served, time.Duration(since[0]-end))
		}
		return true
	})
	h.stop()
	grants := h.requireApart()
	require.Equal(t, isFenced, h.largest > 0, "tokens")
	require.Empty(t, w.wrong)
	if testkit.Long() {
		require.Less(t, served, 10*time.Second, "to the first grant of the last goroutine")
	}
	t.Log(grants, "grants,", faults, "; all served", served, "after the faults ended")
}

// harm harms servers and processes for a while. All are well when it returns.
func harm(t *testing.T, servers []*realredis.Server, h *holders, total time.Duration, isFenced bool) string {
	faults := []string{"servers stopped", "process stopped", "process killed", "server killed", "connections cut"}
	if isFenced {
		faults = append(faults, "FLUSHALL", "DEL redlock:fence")
	}
	awaitVote := func(i int) { // or too many might forget
		a := cluster.NewAdmin(t, servers[i])
		testkit.Await(t, "its vote", func() bool {
			return !isFenced || strings.Contains(a.Do("ZRANGEBYSCORE redlock:fence -1 -1"), "active:")
		})
	}
	pause := func(most time.Duration) { time.Sleep(time.Duration(rand.Int64N(int64(most)))) }
	counts := map[string]int{}
	for start := time.Now(); time.Since(start) < total; {
		fault, at := faults[rand.IntN(len(faults))], rand.IntN(5)
		counts[fault]++
		switch fault {
		case "servers stopped": // at times a majority
			var stopped []*realredis.Server
			for i := range 1 + rand.IntN(3) {
				stopped = append(stopped, servers[(at+i)%5])
			}
			for _, s := range stopped {
				require.NoError(t, s.Stop())
			}
			pause(4 * brief)
			for _, s := range stopped {
				require.NoError(t, s.Cont())
			}
		case "process stopped":
			p := rand.IntN(4)
			h.signal(p, syscall.SIGSTOP)
			pause(4 * brief)
			h.signal(p, syscall.SIGCONT)
		case "process killed":
			h.kill(rand.IntN(4))
		case "server killed":
			require.NoError(t, servers[at].Kill())
			pause(2 * brief)
			require.NoError(t, servers[at].Restart())
			awaitVote(at)
		case "connections cut":
			cluster.NewAdmin(t, servers[at]).Cut()
		default:
			cluster.NewAdmin(t, servers[at]).Do(fault)
			awaitVote(at)
		}
		pause(brief)
	}
	return fmt.Sprint(counts)
}
