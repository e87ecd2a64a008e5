package histories

import (
	"context"
	"errors"
	"fmt"
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

// fencedHistory is fenced clients with clocks that step and swing, on suspended machines, nodes
// that lose and roll back their tokens, one or all at once, and operators who come late and twice,
// with the largest token granted.
type fencedHistory struct {
	*virtual.World
	seed     uint64
	machines []*virtual.Machine
	clients  []*redlock.Client
	clocks   []*atomic.Int64
	end      time.Time

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

// use has one goroutine of a client lock keys again and again.
func (h *fencedHistory) use(client, user int) {
	rng := newRandom(h.seed, uint64(100*client+user+1))
	c, name := h.clients[client], fmt.Sprintf("client %d.%d", client, user)
	for time.Now().Before(h.end) {
		h.lockOnce(c, name, rng, 2, 4)
		time.Sleep(rng.N(50 * time.Millisecond))
	}
}

// lockOnce locks one of so many keys, in one of so many ways, and gives it back as a rule.
func (h *fencedHistory) lockOnce(c *redlock.Client, name string, rng random, keys, ways int) (won bool) {
	key := fmt.Sprint("k", rng.IntN(keys))
	ttl := 100*time.Millisecond + rng.N(maxTTL-100*time.Millisecond)
	ctx, cancel := context.WithTimeout(h.T.Context(), rng.N(time.Second))
	defer cancel()
	l, err := h.acquire(ctx, c, name, key, ttl, rng.IntN(ways))
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

func (h *fencedHistory) trouble() {
	rng := newRandom(h.seed, 1000)
	for time.Now().Before(h.end) {
		time.Sleep(50*time.Millisecond + rng.N(500*time.Millisecond))
		s, what := h.Servers[rng.IntN(len(h.Servers))], rng.IntN(10)
		h.mu.Lock()
		spared := h.closed && rng.IntN(4) > 0 || time.Since(h.read) < time.Second // or no operator would ever come
		h.mu.Unlock()
		switch {
		case what > 4:
			h.disturb(rng, s, 2*time.Second, -5*time.Second, time.Hour, 24*time.Hour, -24*time.Hour)
		case spared:
		case what < 2:
			s.Flush()
			h.loses()
		case what == 2:
			_ = s.Restart(rng.IntN(2) == 0)
			h.loses()
		case what == 3: // an older file
			old, ok := s.Fence(fenceSet)
			time.Sleep(rng.N(750 * time.Millisecond))
			_ = s.Restart(true)
			if ok {
				s.SetFence(fenceSet, old)
			}
			h.loses()
		case rng.IntN(3) == 0:
			h.Servers.Flush()
			h.loses()
			h.count("total losses")
		}
	}
}

// disturb is harm by which a node loses nothing, or another time of a machine.
func (h *fencedHistory) disturb(rng random, s *fakeredis.Server, off ...time.Duration) {
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
		off = append(off, 0, 0)
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
		err := h.clients[rng.IntN(len(h.clients))].RecoverFencing(ctx, max(atLeast, 1))
		cancel()
		h.mu.Lock()
		if err == nil {
			h.closed = false
			h.counts["recovered"]++
		}
		h.mu.Unlock()
	}
}

func newFencedHistory(w *virtual.World, seed uint64, d time.Duration) *fencedHistory {
	return &fencedHistory{World: w, seed: seed, grants: map[string][]fencedGrant{}, counts: counts{}, end: time.Now().Add(d)}
}

func runFencedHistory(t *testing.T, seed uint64) (happened counts) {
	synctest.Test(t, func(t *testing.T) {
		plan := newRandom(seed, 0)
		w := virtual.New(t, seed, 3+2*plan.IntN(2))
		defer w.Close()
		h := newFencedHistory(w, seed, 20*time.Second)
		for range 2 + plan.IntN(2) {
			off := new(atomic.Int64)
			c, m := w.ClientOn(w.Machine(), fencedAt(off), func(c *redlock.Config) { c.NoHandOver = true })
			h.clients, h.machines, h.clocks = append(h.clients, c), append(h.machines, m), append(h.clocks, off)
		}
		require.NoError(t, h.clients[0].InitFencing(t.Context()))
		var all sync.WaitGroup
		for i := range h.clients {
			all.Go(func() { h.use(i, 0) })
			all.Go(func() { h.use(i, 1) })
		}
		all.Go(h.trouble)
		all.Go(func() { h.operate(0) })
		all.Go(func() { h.operate(1) })
		all.Wait()
		h.mu.Lock()
		defer h.mu.Unlock()
		require.Empty(t, h.errors, "seed %d", seed)
		happened = h.counts
	})
	return happened
}

// TestFencedHistories: tokens grow. There are as many seeds as in TestHistories.
func TestFencedHistories(t *testing.T) {
	t.Parallel()
	first, n := from(seeds())
	sum := counts{}
	for seed := first; seed < first+n && !t.Failed(); seed++ {
		sum.add(runFencedHistory(t, seed))
	}
	t.Logf("%d histories: %v", n, sum)
	if n >= 60 && !t.Failed() {
		require.Greater(t, sum["granted"]/20, int(n)/10)
		sum.requireEach(t, n/10, "forgotten", "recovered", "losses", "total losses")
	}
}
