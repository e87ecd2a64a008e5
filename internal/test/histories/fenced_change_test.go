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
	*fencedHistory
	lists   [4][2]layout // of each step, before and after the change; 3 is the way back
	grouped bool         // there are several groups
	step    atomic.Int64 // the present one

	plan  int  // 1: it is taken back before the call; 2: after it; 3: there is none
	apart bool // the lists have no node in common
	hasty bool // operators change at a wrong time too
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

func (h *changingHistory) use(user int) {
	rng, keys := newRandom(h.seed, uint64(100+user)), 3
	if h.grouped {
		keys = 6
	}
	for n := 0; time.Now().Before(h.end); n++ {
		step := int(h.step.Load())
		if rng.IntN(4) == 0 {
			step = rng.IntN(h.steps())
		}
		name, at := fmt.Sprintf("client %d.%d of step %d", user, n, step), user%len(h.machines)
		c := h.connect(step, h.machines[at], h.clocks[at])
		for end := time.Now().Add(rng.N(3 * time.Second)); time.Now().Before(end); {
			if h.lockOnce(c, name, rng, keys, 3) {
				h.count(fmt.Sprint("locks in step ", step))
			}
			time.Sleep(rng.N(50 * time.Millisecond))
		}
		_ = c.Close()
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
			both.Wait()
			if returned {
				h.count("calls")
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
// ones, as fencing's MODEL.md says.
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
			h.count("refused")
		} else {
			h.count("done at a wrong time")
		}
	}
}

// trouble has one node after another forget, and does other harm.
func (h *changingHistory) trouble() {
	rng := newRandom(h.seed, 2000)
	for time.Now().Before(h.end) {
		time.Sleep(50*time.Millisecond + rng.N(700*time.Millisecond))
		s, what := h.Servers[rng.IntN(len(h.Servers))], rng.IntN(10)
		h.mu.Lock()
		spared := time.Since(h.lost) < 2*maxTTL || time.Since(h.read) < time.Second
		h.mu.Unlock()
		switch {
		case what > 2:
			h.disturb(rng, s, 2*time.Second, -5*time.Second, time.Hour, -24*time.Hour)
		case spared: // a second one would be for an operator with a number
		case what == 0:
			_ = s.Restart(rng.IntN(2) == 0)
			h.loses()
		default:
			s.Flush()
			h.loses()
		}
	}
}

func runChangingHistory(t *testing.T, seed uint64) (happened counts) {
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
		h := &changingHistory{fencedHistory: newFencedHistory(w, seed, changeFor), grouped: grouped}
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
			h.counts["at the end"]++
			for _, g := range h.grants["k0"] {
				require.True(t, err != nil || l.Fence() > g.token, "seed %d: %s", seed, g.who)
			}
		} else if os.Getenv("REDLOCK_SEED") != "" {
			t.Logf("no lock at the end, in step %d: %v", h.step.Load(), err)
		}
		happened = h.counts
	})
	return happened
}

// TestChangingHistories: tokens grow through a change of nodes, in each order of steps.
func TestChangingHistories(t *testing.T) {
	t.Parallel()
	some := max(seeds()/4, 1)
	if seeds() >= 10_000 {
		some = seeds()
	}
	first, n := from(some)
	sum := counts{}
	for seed := first; seed < first+n && !t.Failed(); seed++ {
		sum.add(runChangingHistory(t, seed))
	}
	t.Logf("%d histories: %v", n, sum)
	if n >= 40 && !t.Failed() {
		sum.requireEach(t, n/10, "locks in step 0", "locks in step 1", "locks in step 2", "locks in step 3", "calls", "losses", "refused", "done at a wrong time")
		require.Greater(t, sum["at the end"], int(n)*8/10, "no lock at the end")
	}
}
