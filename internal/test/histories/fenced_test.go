package histories

import (
	"context"
	"errors"
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
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

// fencedHistory is fenced clients with clocks that step and swing, on suspended machines, while one node after another
// forgets, hangs or is cut off. In some their nodes, or groups, change: most clients are in the present step, and some in any
// other, and nodes must keep them apart; operators' calls end early and are made again, some by two at once. In the others
// nodes lose and roll back their tokens, one or all at once, and operators come late and twice, with the largest token granted.
type fencedHistory struct {
	*virtual.World
	seed     uint64
	plan     changePlan
	lists    [4][2]layout // of each step, before and after the change; 3 is the way back
	grouped  bool         // there are several groups
	apart    bool         // the lists have no node in common
	hasty    bool         // operators change at a wrong time too
	machines []*virtual.Machine
	clocks   []*atomic.Int64
	end      time.Time
	step     atomic.Int64 // the present one

	mu     sync.Mutex
	turn   int // counts the events
	grants map[string][]fencedGrant
	seen   uint64    // the largest token
	lost   time.Time // the last loss of tokens on a node
	read   time.Time // the last number read by an operator
	closed bool      // a client has learned so since an operator has come
	errors []string
	counts counts
}

// counts are how often something happened, in a history or in many.
type counts map[string]int

func (c counts) add(more counts) {
	for name, n := range more {
		c[name] += n
	}
}

// requireEach requires that each of these happened more often than least.
func (c counts) requireEach(t *testing.T, least uint64, names ...string) {
	t.Helper()
	for _, name := range names {
		require.Greater(t, c[name], int(least), "%s hardly ever happened", name)
	}
}

type fencedGrant struct {
	token     uint64
	succeeded int // turn
	who       string
}

func (h *fencedHistory) connect(step, at int) *redlock.Client {
	c, err := h.machines[at].Client(h.config(step, h.clocks[at]))
	require.NoError(h.T, err)
	return c
}

func (h *fencedHistory) config(step int, off *atomic.Int64) redlock.Config {
	cfg := redlock.Config{NoHandOver: true, Logger: slog.New(slog.DiscardHandler)}
	h.lists[step][0].configure(h.lists[step][1], h.Nodes, &cfg)
	fencedAt(off)(&cfg)
	return cfg
}

// use has one client after the other lock keys again and again.
func (h *fencedHistory) use(user int) {
	rng, keys := newRandom(h.seed, uint64(100+user)), 3
	if h.grouped {
		keys = 6
	}
	for n := 0; time.Now().Before(h.end); n++ {
		step := int(h.step.Load())
		if rng.IntN(4) == 0 {
			step = rng.IntN(h.steps())
		}
		name, end := fmt.Sprintf("client %d.%d of step %d", user, n, step), time.Now().Add(rng.N(3*time.Second))
		if h.plan == unchanged {
			end = h.end
		}
		c := h.connect(step, user%len(h.machines))
		for time.Now().Before(end) {
			if h.lockOnce(c, name, rng, keys) {
				h.count(fmt.Sprint("locks in step ", step))
			}
			time.Sleep(rng.N(50 * time.Millisecond))
		}
		_ = c.Close()
	}
}

// lockOnce locks one of so many keys, and gives it back as a rule.
func (h *fencedHistory) lockOnce(c *redlock.Client, name string, rng random, keys int) (won bool) {
	key := fmt.Sprint("k", rng.IntN(keys))
	ttl := 100*time.Millisecond + rng.N(maxTTL-100*time.Millisecond)
	ctx, cancel := context.WithTimeout(h.T.Context(), rng.N(time.Second))
	defer cancel()
	l, err := h.acquire(ctx, c, name, key, ttl, rng.IntN(4))
	h.mu.Lock()
	if errors.Is(err, redlock.ErrForgotten) {
		h.closed = true
		h.counts["forgotten"]++
	}
	h.mu.Unlock()
	if err == nil && rng.IntN(5) > 0 {
		time.Sleep(rng.N(100 * time.Millisecond))
		_ = l.Release(ctx)
	}
	return err == nil
}

// acquire locks a key in one of four ways, and notes its token.
func (h *fencedHistory) acquire(ctx context.Context, c *redlock.Client, who, key string, ttl time.Duration, kind int) (l redlock.Lock, err error) {
	token := uint64(0)
	h.mu.Lock()
	h.turn++
	began := h.turn
	h.mu.Unlock()
	switch kind {
	case 0:
		l, err = c.TryAcquire(ctx, key, ttl)
	case 1:
		l, err = c.Acquire(ctx, key, ttl)
	case 2:
		l, err = c.TryAcquireAll(ctx, ttl, key, "and "+key)
	case 3:
		done := make(chan struct{})
		op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte(key), TTL: ttl, Done: func(*redlock.Op) { close(done) }}
		if err = c.Submit(op); err == nil {
			<-done
			err, token = op.Err(), op.Fence()
		}
	}
	token = max(token, l.Fence())
	if err == nil {
		h.granted(who, key, token, began)
	}
	return l, err
}

func (h *fencedHistory) granted(who, key string, token uint64, began int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.turn++
	for _, g := range h.grants[key] {
		switch {
		case g.token == token:
			h.errors = append(h.errors, fmt.Sprintf("%s and %s have the token %d of %s", g.who, who, token, key))
		case g.succeeded < began && g.token > token:
			h.errors = append(h.errors, fmt.Sprintf("%s has the token %d of %s, and %s had %d before (by %d us)", who, token, key, g.who, g.token, g.token-token))
		case g.succeeded < began:
			h.counts["in order"]++
		}
	}
	h.grants[key] = append(h.grants[key], fencedGrant{token, h.turn, who})
	h.seen = max(h.seen, token)
	h.counts["granted"]++
}

func (h *fencedHistory) count(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[name]++
}

func (h *fencedHistory) loses() {
	h.count("losses")
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost = time.Now()
}

// trouble has one node after another forget, and does other harm. Where nodes change a second loss would be for an operator
// with a number.
func (h *fencedHistory) trouble() {
	rng, losses, off := newRandom(h.seed, 1000), 5, []time.Duration{0, 0, 2 * time.Second, -5 * time.Second, time.Hour, -24 * time.Hour, 24 * time.Hour}
	if h.plan != unchanged {
		losses, off = 3, off[:6]
	}
	for time.Now().Before(h.end) {
		time.Sleep(50*time.Millisecond + rng.N(600*time.Millisecond))
		s, what := h.Servers[rng.IntN(len(h.Servers))], rng.IntN(10)
		h.mu.Lock()
		spared := h.closed && rng.IntN(4) > 0 // or no operator would ever come
		if h.plan != unchanged {
			spared = time.Since(h.lost) < 2*maxTTL
		}
		spared = spared || time.Since(h.read) < time.Second
		h.mu.Unlock()
		switch {
		case what >= losses:
			h.disturb(rng, s, off)
			continue
		case spared:
			continue
		case what < 2:
			s.Flush()
		case what == 2:
			_ = s.Restart(rng.IntN(2) == 0)
		case what == 3: // an older file
			old, ok := s.Fence(fenceSet)
			time.Sleep(rng.N(750 * time.Millisecond))
			_ = s.Restart(true)
			if ok {
				s.SetFence(fenceSet, old)
			}
		default:
			h.Servers.Flush()
			h.count("total losses")
		}
		h.loses()
	}
}

// disturb is harm by which a node loses nothing, or another time of a machine.
func (h *fencedHistory) disturb(rng random, s *fakeredis.Server, off []time.Duration) {
	at := rng.IntN(len(h.machines))
	switch rng.IntN(5) {
	case 0:
		s.Down()
		time.Sleep(rng.N(1500 * time.Millisecond))
		_ = s.Heal()
	case 1:
		h.machines[at].Suspend()
		time.Sleep(rng.N(3 * time.Second))
		h.machines[at].Wake()
	case 2:
		l := h.machines[at].Link(s.Addr())
		l.Hold(rng.IntN(2) == 0, true)
		time.Sleep(rng.N(1500 * time.Millisecond))
		l.Release()
	default:
		h.clocks[at].Store(int64(off[rng.IntN(len(off))]))
	}
}

// operate is an operator who acts after clients' reports that too many nodes have forgotten: a
// MaxTTL after the last loss, and later, with the largest token of then.
func (h *fencedHistory) operate(number uint64) {
	rng := newRandom(h.seed, 2000+number)
	for time.Now().Before(h.end) {
		time.Sleep(100*time.Millisecond + rng.N(400*time.Millisecond))
		h.mu.Lock()
		acts, atLeast := h.closed && time.Since(h.lost) > maxTTL+maxTTL/50, h.seen
		if acts {
			h.read = time.Now()
		}
		h.mu.Unlock()
		if !acts {
			continue
		}
		ctx, cancel := context.WithTimeout(h.T.Context(), rng.N(10*time.Second))
		c := h.connect(0, rng.IntN(len(h.machines)))
		err := c.RecoverFencing(ctx, max(atLeast, 1))
		cancel()
		_ = c.Close()
		h.mu.Lock()
		if err == nil {
			h.closed = false
			h.counts["recovered"]++
		}
		h.mu.Unlock()
	}
}

func runFencedHistory(t *testing.T, seed uint64) (happened counts) {
	synctest.Test(t, func(t *testing.T) {
		h := &fencedHistory{seed: seed, grants: map[string][]fencedGrant{}, counts: counts{}}
		nodes, old, next := h.change(newRandom(seed, 0))
		h.apart = next != nil && old[0][0] != next[0][0] && !slices.Contains(old[0], next[0][0])
		h.lists = [4][2]layout{{old, nil}, {old, next}, {next, nil}, {next, old}}
		h.World = virtual.New(t, seed, nodes)
		defer h.Close()
		for range 3 {
			m := h.Machine()
			for _, node := range h.Nodes {
				m.Link(node) // one made while the machine is suspended would not be
			}
			h.machines, h.clocks = append(h.machines, m), append(h.clocks, new(atomic.Int64))
		}
		first := h.connect(0, 0)
		require.NoError(t, first.InitFencing(t.Context()))
		require.NoError(t, first.Close())
		h.end = time.Now().Add(25 * time.Second)
		var all sync.WaitGroup
		for user := range 5 {
			all.Go(func() { h.use(user) })
		}
		all.Go(h.trouble)
		if h.plan == unchanged {
			all.Go(func() { h.operate(0) })
			all.Go(func() { h.operate(1) })
		} else {
			all.Go(h.direct)
			all.Go(h.meddle)
		}
		all.Wait()
		h.mu.Lock()
		defer h.mu.Unlock()
		require.Empty(t, h.errors, "seed %d", seed)
		if happened = h.counts; h.plan == unchanged {
			return
		}
		happened["changes"]++
		h.clocks[0].Store(0)
		last := h.connect(int(h.step.Load()), 0)
		defer func() { _ = last.Close() }()
		ctx, cancel := context.WithTimeout(t.Context(), 5*maxTTL)
		defer cancel()
		if l, err := last.Acquire(ctx, "k0", maxTTL); err == nil || h.hasty { // a change at a wrong time ends the service of a step
			happened["at the end"]++
			for _, g := range h.grants["k0"] {
				require.True(t, err != nil || l.Fence() > g.token, "seed %d: %s", seed, g.who)
			}
		} else if os.Getenv("REDLOCK_SEED") != "" {
			t.Logf("no lock at the end, in step %d: %v", h.step.Load(), err)
		}
	})
	return happened
}

// TestFencedHistories: tokens grow, also through a change of nodes, in each order of steps. There are as many seeds as in
// TestHistories.
func TestFencedHistories(t *testing.T) {
	t.Parallel()
	first, n := from(seeds())
	sum := counts{}
	for seed := first; seed < first+n && !t.Failed(); seed++ {
		sum.add(runFencedHistory(t, seed))
	}
	t.Logf("%d histories: %v", n, sum)
	if n >= 60 && !t.Failed() {
		sum.requireEach(t, n/20, "forgotten", "recovered", "losses", "total losses", "locks in step 0", "locks in step 1", "locks in step 2",
			"locks in step 3", "calls", "refused", "done at a wrong time")
		require.Greater(t, sum["at the end"], sum["changes"]*8/10, "no lock at the end")
	}
}
