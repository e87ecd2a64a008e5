//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/knobs"
	"github.com/redlock-go/redlock/internal/realredis"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
	"github.com/redlock-go/redlock/quorum"
)

// A process of fenced holders writes lines, of the clock that all processes share:
//
//	grant process key token before after until   a lock: when it was asked for and granted, and how long it is valid
//	done process key token at                    its release begins
//	forgotten process                            an acquire was told that too many nodes have forgotten
const (
	longestHold = 600 * time.Millisecond // MaxTTL
	blockSize   = 64                     // tokens of a lease
)

// fencedHolder is how client i is configured: by clocks that are right, an hour ahead and
// behind, and that jump; with hand-over and without; with the restart guard and without.
func fencedHolder(i int) func(*redlock.Config) {
	return func(c *redlock.Config) {
		c.Fenced, c.MaxTTL, c.NoHandOver, knobs.Of(c).TrustRestarts = true, longestHold, i%2 == 1, i >= 2
		knobs.Of(c).FenceClock = func() time.Time {
			off := []time.Duration{0, time.Hour, -time.Hour, time.Duration(rand.IntN(3)-1) * time.Hour}[i]
			return time.Now().Add(off)
		}
	}
}

// holdFenced acquires and holds once.
func holdFenced(ctx context.Context, c *redlock.Client, process int) {
	keys := []string{fmt.Sprint("k", rand.IntN(3))}
	ttl := longestHold/2 + rand.N(longestHold/2)
	attempt, cancel := context.WithTimeout(ctx, 2*longestHold)
	defer cancel()
	before := machineTime()
	var l redlock.Lock
	var err error
	switch rand.IntN(8) {
	case 0:
		keys = []string{"k0", "k1"}
		l, err = c.AcquireAll(attempt, ttl, keys...)
	case 1, 2, 3:
		l, err = c.TryAcquire(attempt, keys[0], ttl)
	default:
		l, err = c.Acquire(attempt, keys[0], ttl)
	}
	after := machineTime()
	if err != nil {
		if errors.Is(err, redlock.ErrForgotten) {
			fmt.Println("forgotten", process)
		}
		pauseFor(ctx, time.Duration(rand.IntN(20))*time.Millisecond)
		return
	}
	until := machineTime() + int64(l.Remaining())
	token := l.Fence()
	tell := func(what, times string) {
		text := ""
		for _, key := range keys {
			text += fmt.Sprintln(what, process, key, token, times)
		}
		_, _ = os.Stdout.WriteString(text)
	}
	tell("grant", fmt.Sprint(before, " ", after, " ", until))
	pauseFor(ctx, time.Duration(rand.IntN(4))*time.Millisecond) // its work
	if rand.IntN(4) == 0 {
		_ = l.Extend(ctx, ttl)
	}
	ends := rand.IntN(64)
	if ends == 0 {
		return // with its TTL
	}
	tell("done", fmt.Sprint(machineTime()))
	if ends < 8 {
		l.ReleaseAsync()
	} else {
		_ = l.Release(context.Background())
	}
}

func pauseFor(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// grant is a lock that a process was given.
type grant struct {
	process                    int
	token                      uint64
	before, after, until, done int64
	handedOver                 bool
}

// grants is what the processes tell.
type grants struct {
	mu        sync.Mutex
	of        map[string]map[uint64]*grant // by key and token
	count     [4]int
	forgotten [4]int
	twice     []string
}

func (g *grants) hear(line string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var key string
	var one grant
	if n, _ := fmt.Sscanf(line, "grant %d %s %d %d %d %d", &one.process, &key, &one.token, &one.before, &one.after, &one.until); n == 6 {
		if g.of[key] == nil {
			g.of[key] = map[uint64]*grant{}
		}
		if g.of[key][one.token] != nil {
			g.twice = append(g.twice, line)
		}
		g.of[key][one.token] = &one
		g.count[one.process]++
	}
	if n, _ := fmt.Sscanf(line, "done %d %s %d %d", &one.process, &key, &one.token, &one.done); n == 4 {
		g.of[key][one.token].done = one.done
	}
	if n, _ := fmt.Sscanf(line, "forgotten %d", &one.process); n == 1 {
		g.forgotten[one.process]++
	}
}

// counts are the grants of each process, and how often each was told that too many nodes
// have forgotten.
func (g *grants) counts() (granted, forgotten [4]int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.count, g.forgotten
}

// largest is the largest token that was granted.
func (g *grants) largest() (token uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, grants := range g.of {
		for _, one := range grants {
			token = max(token, one.token)
		}
	}
	return token
}

// check requires, of each key, that no token was given twice, that a lock which was granted
// before an attempt began has the smaller token, and that no two were valid at once. A lock
// that was handed over has a token of its first holder's block, and counts from the
// beginning of that holder's attempt.
func (g *grants) check(t *testing.T) {
	g.mu.Lock()
	defer g.mu.Unlock()
	require.Empty(t, g.twice)
	var all, handed, compared int
	for key, grants := range g.of {
		var list []*grant
		for _, one := range grants {
			list = append(list, one)
		}
		slices.SortFunc(list, func(a, b *grant) int { return int(int64(a.token) - int64(b.token)) })
		var first [4]*grant // of the last block of each process
		for _, one := range list {
			if f := first[one.process]; f != nil && one.token < f.token+blockSize {
				one.handedOver, one.before = true, min(one.before, f.before)
				handed++
			} else {
				first[one.process] = one
			}
		}
		all += len(list)
		earliest := &grant{after: 1<<63 - 1} // of those with larger tokens
		for _, one := range slices.Backward(list) {
			require.Less(t, one.before, earliest.after, "%s: %+v was asked for after %+v was granted", key, one, earliest)
			if one.after < earliest.after {
				earliest = one
			}
		}
		slices.SortFunc(list, func(a, b *grant) int { return int(a.after - b.after) })
		for i, one := range list {
			if one.done != 0 {
				one.until = min(one.until, one.done)
			}
			if i == 0 {
				continue
			}
			prior := list[i-1]
			require.LessOrEqual(t, prior.until, one.after, "%s: %+v and %+v at once", key, prior, one)
			if one.before > prior.after {
				compared++
			}
			one.until = max(one.until, prior.until)
		}
	}
	require.Positive(t, handed)
	require.Positive(t, compared)
	t.Logf("%d locks, of which %d were handed over and %d asked for after the one before was granted", all, handed, compared)
}

// fencedFleet is servers, and what was done to them.
type fencedFleet struct {
	t       *testing.T
	servers []*realredis.Server
	faults  map[string]int
}

func (f *fencedFleet) admin(i int) *cluster.Admin { return cluster.NewAdmin(f.t, f.servers[i]) }

// awaitVotes waits until all nodes have their vote, by their own word, and returns how long
// that took.
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
		awaitPassed(f.t, rand.N(longestHold/4))
		require.NoError(f.t, s.Restart())
	}
}

// standStill stops servers for a while.
func (f *fencedFleet) standStill(servers ...*realredis.Server) {
	for _, s := range servers {
		f.faults["SIGSTOP of a server"]++
		require.NoError(f.t, s.Stop())
	}
	awaitPassed(f.t, rand.N(2*longestHold))
	for _, s := range servers {
		require.NoError(f.t, s.Cont())
	}
}

// TestRealFence: four processes of fenced clients, with clocks that are an hour off, while
// servers lose their data, and servers and processes stand still. Tokens grow with the
// grants; nodes that have forgotten get their vote back; and where too many have, the
// clients say so until an operator has given it to them.
func TestRealFence(t *testing.T) {
	if os.Getenv(holdersEnv) != "" {
		me, err := strconv.Atoi(os.Getenv(holderEnv))
		require.NoError(t, err)
		runHolders(t, func(ctx context.Context, c *redlock.Client, _ int) { holdFenced(ctx, c, me) }, fencedHolder(me))
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
		t.Run("mixed", func(t *testing.T) { realFence(t, 4*time.Second, kinds...) })
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
	told := grants{of: map[string]map[uint64]*grant{}}
	initialize := func() error { return operator.InitFencing(t.Context(), told.largest()) }
	require.NoError(t, testkit.Try(t, "InitFencing", initialize))
	require.NoError(t, testkit.Try(t, "Ready", func() error { return operator.Ready(t.Context()) }))
	h := newHolders(t, nodes, 4)
	h.other = told.hear
	for i := range 4 {
		h.start(i)
	}
	progress := func() {
		t.Helper()
		before, _ := told.counts()
		testkit.Await(t, "progress of all processes", func() bool {
			now, _ := told.counts()
			return !slices.ContainsFunc([]int{0, 1, 2, 3}, func(i int) bool { return now[i] == before[i] })
		})
	}
	progress()

	quarantine := longestHold + quorum.Drift(longestHold)
	const slack = 2 * time.Second // the machine is busy
	var longest time.Duration
	for start := time.Now(); time.Since(start) < long; progress() {
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
				awaitPassed(t, rand.N(longestHold/2))
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
			awaitPassed(t, rand.N(2*longestHold))
			h.signal(p, syscall.SIGCONT)
		}
	}

	f.awaitVotes(2*quarantine + slack)
	_, before := told.counts()
	for i := range 3 {
		require.NoError(t, f.servers[i].Restart())
	}
	testkit.Await(t, "ErrForgotten in all processes", func() bool {
		_, now := told.counts()
		return !slices.ContainsFunc([]int{0, 1, 2, 3}, func(i int) bool { return now[i] == before[i] })
	})
	require.ErrorIs(t, cluster.IsReady(operator), redlock.ErrNoQuorum)
	awaitPassed(t, quarantine) // no attempt from before is under way
	require.NoError(t, testkit.Try(t, "InitFencing", initialize))
	f.awaitVotes(slack)
	progress()
	h.stop()
	told.check(t)
	granted, _ := told.counts()
	t.Logf("%v; locks of each process %v; the votes were back after %v at most, a quarantine is %v", f.faults, granted, longest, quarantine)
}
