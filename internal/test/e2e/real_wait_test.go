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

// mixedServers starts persistent servers of all available kinds, in one quorum.
func mixedServers(t *testing.T, n int) (servers []*realredis.Server) {
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
		servers = append(servers, realredis.StartN(t, 1, realredis.Options{Kind: kinds[i%len(kinds)], Persistent: true})...)
	}
	return servers
}

// TestRealWaits: four processes of several goroutines each want three keys and three permits, while servers are
// stopped, killed and started anew, processes are stopped and killed, connections are cut, and some
// callers give up. At no moment do two hold a key, unless they share it. When the faults end all are served.
func TestRealWaits(t *testing.T) {
	if os.Getenv(holdersEnv) != "" {
		turns := make([]int, perProcess())
		runHolders(t, func(ctx context.Context, c *redlock.Client, me int) {
			turns[me]++
			own := ctx
			if rand.IntN(8) == 0 {
				var cancel context.CancelFunc
				own, cancel = context.WithTimeout(ctx, rand.N(100*time.Millisecond))
				defer cancel()
			}
			contend(own, c, fmt.Sprintf("%d.%d", os.Getpid(), me), turns[me], brief)
		}, func(c *redlock.Config) { c.NoHandOver = os.Getenv(holderEnv) == "3" })
		return
	}
	t.Parallel()
	servers := mixedServers(t, 5)
	w := &waits{granted: map[string][]int64{}}
	h := startHolders(t, cluster.PersistentAddrs(servers), 4, w.hear)
	total := time.Second
	if testkit.Long() {
		total = 90 * time.Second
	}
	faults := harm(t, servers, h, total)
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
	require.Empty(t, w.wrong)
	if testkit.Long() {
		require.Less(t, served, 10*time.Second, "to the first grant of the last goroutine")
	}
	t.Log(grants, "grants,", faults, "; all served", served, "after the faults ended")
}

// harm harms servers and processes for a while. All are well when it returns.
func harm(t *testing.T, servers []*realredis.Server, h *holders, total time.Duration) string {
	pause := func(most time.Duration) { time.Sleep(time.Duration(rand.Int64N(int64(most)))) }
	counts := map[string]int{}
	for start := time.Now(); time.Since(start) < total; {
		fault := []string{"servers stopped", "process stopped", "process killed", "server killed", "connections cut"}[rand.IntN(5)]
		counts[fault]++
		switch fault {
		case "servers stopped": // at times a majority
			first := rand.IntN(5)
			var stopped []*realredis.Server
			for i := range 1 + rand.IntN(3) {
				stopped = append(stopped, servers[(first+i)%5])
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
			s := servers[rand.IntN(5)]
			require.NoError(t, s.Kill())
			pause(2 * brief)
			require.NoError(t, s.Restart())
		case "connections cut":
			cluster.NewAdmin(t, servers[rand.IntN(5)]).Cut()
		}
		pause(brief)
	}
	return strings.Trim(fmt.Sprint(counts), "map[]")
}
