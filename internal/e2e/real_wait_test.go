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
	"github.com/redlock-go/redlock/internal/realredis"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// say writes a line of a process of holders: a word, who says it, and the time.
func say(word, who string) {
	_, _ = fmt.Fprintf(os.Stdout, "%s %s %d\n", word, who, machineTime())
}

// holdLock is hold for a lock that is not kept alive: no longer than it is valid.
func holdLock(l redlock.Lock, holder string, long time.Duration) {
	key := l.Key()
	for start := time.Now(); ; time.Sleep(min(long, time.Millisecond)) {
		now := machineTime()
		if l.Remaining() == 0 {
			return
		}
		_, _ = fmt.Fprintf(os.Stdout, "held %s %s %d\n", key, holder, now)
		if time.Since(start) >= long {
			return
		}
	}
}

// waits is what processes say of their waits: when each goroutine was granted a lock last,
// and what has gone wrong. Goroutines are named by the process's id and a number.
type waits struct {
	granted map[string][]int64
	began   map[string]int64 // a wait, which has not ended
	wrong   []string
}

func (w *waits) hear(line string) {
	var word, who string
	var at int64
	if n, _ := fmt.Sscan(line, &word, &who, &at); n != 3 {
		return
	}
	switch word {
	case "asks":
		w.began[who] = at
	case "granted":
		w.granted[who] = append(w.granted[who], at)
		delete(w.began, who)
	case "left":
		delete(w.began, who)
	case "wrong":
		w.wrong = append(w.wrong, line)
	}
}

// servers of all kinds that there are, in one quorum, which forget nothing.
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
		kinds = append(kinds, realredis.Usual) // StartN says why not
	}
	for i := range n {
		servers = append(servers, realredis.StartN(t, 1, realredis.Options{Kind: kinds[i%len(kinds)], Persistent: true})...)
	}
	return servers
}

// TestRealWaits: four processes of eight goroutines each wait for three keys, while servers
// are stopped, killed and started anew, processes are stopped and killed, connections are
// cut, and some callers give up. At no moment do two hold a key. When the faults end all
// are served.
func TestRealWaits(t *testing.T) {
	if os.Getenv(holdersEnv) != "" {
		turns := make([]int, 8)
		runHolders(t, func(ctx context.Context, c *redlock.Client, me int) {
			turns[me]++
			who := fmt.Sprintf("%d.%d", os.Getpid(), me)
			own := ctx
			if rand.IntN(8) == 0 {
				var cancel context.CancelFunc
				own, cancel = context.WithTimeout(ctx, time.Duration(rand.IntN(100))*time.Millisecond)
				defer cancel()
			}
			say("asks", who)
			l, err := c.Acquire(own, fmt.Sprint("k", rand.IntN(3)), brief)
			switch {
			case err == nil:
				say("granted", who)
			case own.Err() != nil:
				say("left", who)
				return
			default:
				say("wrong", fmt.Sprintf("%q", err.Error()))
				return
			}
			holdLock(l, fmt.Sprintf("%s.%d", who, turns[me]), time.Duration(rand.IntN(8))*time.Millisecond)
			switch rand.IntN(16) {
			case 0: // it ends by itself
			case 1:
				l.ReleaseAsync()
			default:
				_ = l.Release(context.Background())
			}
		}, func(c *redlock.Config) { c.NoHandOver = os.Getenv(holderEnv) == "3" })
		return
	}
	t.Parallel()
	servers := mixedServers(t, 5)
	h := newHolders(t, cluster.PersistentAddrs(servers), 4)
	w := &waits{granted: map[string][]int64{}, began: map[string]int64{}}
	h.other = w.hear
	for i := range 4 {
		h.start(i)
	}
	for i := range 4 {
		testkit.Await(t, "each to work", func() bool { return h.turnsOf(i) > 0 })
	}
	total := 4 * time.Second
	if testkit.Long() {
		total = 90 * time.Second
	}
	faults := harm(t, servers, h, total)
	end := machineTime()

	goroutines := func() (names []string) {
		for _, cmd := range h.procs {
			for me := range 8 {
				names = append(names, fmt.Sprintf("%d.%d", cmd.Process.Pid, me))
			}
		}
		return names
	}
	const rounds = 3 // so that all places in queues have been taken anew
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
	h.requireApart()
	require.Empty(t, w.wrong)
	require.Less(t, served, 10*time.Second, "to the first grant of the last goroutine")
	grants := 0
	for _, times := range h.times {
		grants += len(times)
	}
	t.Log(grants, "grants,", faults, "; all served", served, "after the faults ended")
}

// harm harms servers and processes for a while. All are well when it returns.
func harm(t *testing.T, servers []*realredis.Server, h *holders, total time.Duration) string {
	pause := func(most time.Duration) { awaitPassed(t, time.Duration(rand.Int64N(int64(most)))) }
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
