package histories

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

// changingHistory is a change of nodes, or groups, of fenced clients. Most clients are in the
// present step, and some in any other: nodes must keep them apart. One node after another forgets,
// hangs or is cut off, at any time; machines are suspended, and have any clock; operators' calls
// end early and are made again, some by two at once.
type changingHistory struct {
	fencedHistory
	lists   [4][2]layout // of each step, before and after the change; 3 is the way back
	grouped bool         // there are several groups
	step    atomic.Int64 // the present one
	calls   atomic.Int64 // returned ones
	won     [4]atomic.Int64

	plan    int      // 1: it is taken back before the call; 2: after it; 3: there is none
	apart   bool     // the lists have no node in common
	hasty   bool     // operators change at a wrong time too
	refused [2]int64 // acts at a wrong time with an error, and with nil
}

const changeFor = 25 * time.Second

// steps is their number: for a client of the way back this change would be under way.
func (h *changingHistory) steps() int {
	if h.plan == 2 {
		return 4
	}
	return 3
}

func (h *changingHistory) connect(step int, m *virtual.Machine, off *atomic.Int64) *redlock.Client {
	c, err := m.Client(h.config(step, off))
	require.NoError(h.T, err)
	return c
}

func (h *changingHistory) config(step int, off *atomic.Int64) redlock.Config {
	cfg := redlock.Config{NoHandOver: true, Logger: slog.New(slog.DiscardHandler)}
	h.lists[step][0].configure(h.lists[step][1], h.Nodes, &cfg)
	fencedAt(off)(&cfg)
	return cfg
}

// use locks keys by one client after another.
func (h *changingHistory) use(user int) {
	rng := newRandom(h.seed, uint64(100+user))
	for n := 0; time.Now().Before(h.end); n++ {
		step := int(h.step.Load())
		if rng.IntN(4) == 0 {
			step = rng.IntN(h.steps())
		}
		name, at := fmt.Sprintf("client %d.%d of step %d", user, n, step), user%len(h.machines)
		c := h.connect(step, h.machines[at], h.clocks[at])
		for end := time.Now().Add(rng.N(3 * time.Second)); time.Now().Before(end); {
			h.lockOnce(c, name, rng, step)
			time.Sleep(rng.N(50 * time.Millisecond))
		}
		_ = c.Close()
	}
}

func (h *changingHistory) lockOnce(c *redlock.Client, name string, rng random, step int) {
	key := fmt.Sprint("k", rng.IntN(3))
	if h.grouped {
		key = fmt.Sprint("k", rng.IntN(6))
	}
	ttl := 100*time.Millisecond + rng.N(maxTTL-100*time.Millisecond)
	ctx, cancel := context.WithTimeout(h.T.Context(), rng.N(time.Second))
	defer cancel()
	began := h.begin()
	var l redlock.Lock
	var err error
	switch rng.IntN(3) {
	case 0:
		l, err = c.TryAcquire(ctx, key, ttl)
	case 1:
		l, err = c.Acquire(ctx, key, ttl)
	case 2:
		l, err = c.TryAcquireAll(ctx, ttl, key, "and "+key)
	}
	if err != nil {
		return
	}
	h.granted(name, key, l.Fence(), began)
	h.won[step].Add(1)
	if rng.IntN(5) > 0 {
		time.Sleep(rng.N(50 * time.Millisecond))
		_ = l.Release(ctx)
	}
}

// direct takes the clients through the change: to its end; taken back and begun again; to its end
// and back; never finished.
func (h *changingHistory) direct() {
	rng := newRandom(h.seed, 1000)
	pause := func() { time.Sleep(time.Second + rng.N(2*time.Second)) }
	call := func(step int) {
		for time.Now().Before(h.end) {
			var both sync.WaitGroup
			returned := false
			for n := range 1 + rng.IntN(2) {
				at := rng.IntN(len(h.machines))
				wait := rng.N(8 * time.Second)
				both.Go(func() {
					c := h.connect(step, h.machines[at], h.clocks[at])
					defer func() { _ = c.Close() }()
					ctx, cancel := context.WithTimeout(h.T.Context(), wait)
					defer cancel()
					if h.grouped {
						_ = c.InitFencing(ctx) // the new groups
					}
					if err := c.ChangeFencing(ctx); err == nil && n == 0 {
						returned = true
					}
				})
			}
			if both.Wait(); returned {
				h.calls.Add(1)
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	pause()
	h.step.Store(1)
	pause()
	if h.plan == 1 {
		h.step.Store(0)
		pause()
		h.step.Store(1)
		pause()
	}
	if h.plan == 3 {
		return
	}
	if h.grouped {
		call(1) // new groups have no vote before
		pause()
	}
	call(1)
	h.step.Store(2)
	if h.plan == 2 && time.Now().Before(h.end) {
		pause()
		h.step.Store(3)
		call(3)
		if h.grouped {
			call(3) // if a group had forgotten all
		}
		h.step.Store(0)
	}
}

// meddle is operators who call too early, or too late, and some with a differently configured
// client. Where the lists have no node in common, a client of one of them alone takes nodes for new
// ones: TestMisuse.
func (h *changingHistory) meddle() {
	rng := newRandom(h.seed, 3000)
	for time.Now().Before(h.end) {
		time.Sleep(rng.N(2 * time.Second))
		at, step := rng.IntN(len(h.machines)), rng.IntN(h.steps())
		if h.apart {
			step = 1
		}
		cfg := h.config(step, h.clocks[at])
		if rng.IntN(4) == 0 {
			cfg.MaxTTL *= 2
		}
		c, err := h.machines[at].Client(cfg)
		require.NoError(h.T, err)
		ctx, cancel := context.WithTimeout(h.T.Context(), rng.N(6*time.Second))
		switch rng.IntN(3) {
		case 0:
			err = c.InitFencing(ctx)
		case 1:
			h.mu.Lock()
			may, atLeast := time.Since(h.lost) > maxTTL+maxTTL/50, max(h.seen, 1)
			h.read = time.Now()
			h.mu.Unlock()
			if err = ctx.Err(); may {
				err = c.RecoverFencing(ctx, atLeast)
			}
		case 2:
			if err = ctx.Err(); h.hasty || step%2 == 0 {
				err = c.ChangeFencing(ctx)
			}
		}
		cancel()
		_ = c.Close()
		if err != nil {
			h.refused[0]++
		} else {
			h.refused[1]++
		}
	}
}

// trouble has one node after another forget, and does other harm.
func (h *changingHistory) trouble() {
	rng := newRandom(h.seed, 2000)
	for time.Now().Before(h.end) {
		time.Sleep(50*time.Millisecond + rng.N(700*time.Millisecond))
		s, at := h.Servers[rng.IntN(len(h.Servers))], rng.IntN(len(h.machines))
		switch what := rng.IntN(10); what {
		case 0, 1, 2:
			h.mu.Lock()
			spared := time.Since(h.lost) < 2*maxTTL || time.Since(h.read) < time.Second
			h.mu.Unlock()
			if spared {
				continue // a second one would be for an operator with a number
			}
			if what == 0 {
				_ = s.Restart(rng.IntN(2) == 0)
			} else {
				s.Flush()
			}
			h.mu.Lock()
			h.lost = time.Now()
			h.mu.Unlock()
			h.counts.Losses++
		case 3, 4:
			s.Down()
			time.Sleep(rng.N(time.Second))
			_ = s.Heal()
		case 5:
			m := h.machines[at]
			m.Suspend()
			time.Sleep(rng.N(3 * time.Second))
			m.Wake()
		case 6, 7:
			l := h.machines[at].Link(s.Addr())
			l.Hold(rng.IntN(2) == 0, true)
			time.Sleep(rng.N(time.Second))
			l.Release()
		default:
			off := []time.Duration{0, 0, 2 * time.Second, -5 * time.Second, time.Hour, -24 * time.Hour}
			h.clocks[at].Store(int64(off[rng.IntN(len(off))]))
		}
	}
}

// changingCounts is the counts: grants by step, returned calls, losses, and histories that end with
// a lock for a client in the step of then.
type changingCounts struct {
	Won                              [4]int
	InOrder, Calls, Losses, AtTheEnd int
	Refused, Done                    int // acts at a wrong time
}

func runChangingHistory(t *testing.T, seed uint64) (counts changingCounts) {
	synctest.Test(t, func(t *testing.T) {
		plan := newRandom(seed, 0)
		change := [][2]layout{
			{{{0, 1, 2}}, {{0, 1, 3}}}, {{{0, 1, 2}}, {{0, 1, 2, 3, 4}}}, {{{0, 1, 2}}, {{3, 4, 5}}}, {{{0, 1, 2, 3, 4}}, {{3, 4, 5}}},
		}[plan.IntN(4)]
		nodes, grouped := 6, plan.IntN(2) == 0
		if grouped {
			nodes = 9
			change = [][2]layout{
				{{{0, 1, 2}}, {{0, 1, 2}, {3, 4, 5}}}, {{{0, 1, 2}, {3, 4, 5}}, {{0, 1, 2}, {3, 4, 5}, {6, 7, 8}}},
				{{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}}, {{0, 1, 2}}}, {{{0, 1, 2}, {3, 4, 5}}, {{0, 1, 8}, {3, 4, 5}, {6}}},
			}[plan.IntN(4)]
		}
		w := virtual.New(t, seed, nodes)
		defer w.Close()
		h := &changingHistory{fencedHistory: fencedHistory{World: w, seed: seed, grants: map[string][]fencedGrant{}, end: time.Now().Add(changeFor)}, grouped: grouped}
		old, next := change[0], change[1]
		h.apart, h.hasty = old[0][0] != next[0][0] && !slices.Contains(old[0], next[0][0]), plan.IntN(4) == 0
		h.plan = plan.IntN(4)
		h.lists = [4][2]layout{{old, nil}, {old, next}, {next, nil}, {next, old}}
		for range 3 {
			m := w.Machine()
			for _, node := range w.Nodes {
				m.Link(node) // one made while the machine is suspended would not be
			}
			h.machines, h.clocks = append(h.machines, m), append(h.clocks, new(atomic.Int64))
		}
		first := h.connect(0, h.machines[0], h.clocks[0])
		require.NoError(t, first.InitFencing(t.Context()))
		require.NoError(t, first.Close())
		var all sync.WaitGroup
		for user := range 5 {
			all.Go(func() { h.use(user) })
		}
		all.Go(h.trouble)
		all.Go(h.direct)
		all.Go(h.meddle)
		all.Wait()
		h.mu.Lock()
		defer h.mu.Unlock()
		require.Empty(t, h.errors, "seed %d", seed)
		last := h.connect(int(h.step.Load()), w.Machine(), new(atomic.Int64))
		defer func() { _ = last.Close() }()
		ctx, cancel := context.WithTimeout(t.Context(), 5*maxTTL)
		defer cancel()
		if l, err := last.Acquire(ctx, "k0", maxTTL); err == nil || h.hasty { // a change at a wrong time ends the service of a step
			counts.AtTheEnd++
			for _, g := range h.grants["k0"] {
				require.True(t, err != nil || l.Fence() > g.token, "seed %d: %s", seed, g.who)
			}
		} else if os.Getenv("REDLOCK_SEED") != "" {
			t.Logf("no lock at the end, in step %d: %v", h.step.Load(), err)
		}
		counts.InOrder, counts.Losses, counts.Calls = h.counts.InOrder, h.counts.Losses, int(h.calls.Load())
		counts.Refused, counts.Done = int(h.refused[0]), int(h.refused[1])
		for i := range h.won {
			counts.Won[i] = int(h.won[i].Load())
		}
	})
	return counts
}

// TestChangingHistories: tokens grow through a change of nodes, in each order of steps.
func TestChangingHistories(t *testing.T) {
	t.Parallel()
	some := max(seeds()/4, 1)
	if seeds() >= 10_000 {
		some = seeds()
	}
	first, n := from(some)
	var sum changingCounts
	for seed := first; seed < first+n && !t.Failed(); seed++ {
		c := runChangingHistory(t, seed)
		for i := range c.Won {
			sum.Won[i] += c.Won[i]
		}
		sum.InOrder += c.InOrder
		sum.Calls += c.Calls
		sum.Losses += c.Losses
		sum.AtTheEnd += c.AtTheEnd
		sum.Refused += c.Refused
		sum.Done += c.Done
	}
	t.Logf("%d histories: %+v", n, sum)
	if n >= 40 && !t.Failed() {
		for _, rare := range append(sum.Won[:], sum.Calls, sum.Losses, sum.Refused, sum.Done) {
			require.Greater(t, rare, int(n)/10, "something hardly ever happened")
		}
		require.Greater(t, sum.AtTheEnd, int(n)*8/10, "no lock at the end")
	}
}
