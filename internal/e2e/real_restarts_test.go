package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/realredis"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// promises are the times for which a key was promised to somebody, by Remaining.
// No two may overlap. They are compared and not the holders' doings, so that a
// machine that is slow makes nobody look guilty.
type promises struct {
	key  string
	mu   sync.Mutex
	made []promise
	lost int // before they were over
}

type promise struct {
	who         string
	from, until time.Time
}

func (p *promises) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.made)
}

func (p *promises) lose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost++
}

// broken returns two promises that overlap, if there are any.
func (p *promises) broken() []promise {
	p.mu.Lock()
	defer p.mu.Unlock()
	made := slices.SortedFunc(slices.Values(p.made), func(a, b promise) int { return a.from.Compare(b.from) })
	var longest promise
	for _, m := range made {
		if m.from.Before(longest.until) {
			return []promise{longest, m}
		}
		if m.until.After(longest.until) {
			longest = m
		}
	}
	return nil
}

// hold takes the key once if it can, holds it for a while, and gives it back or
// lets it end.
func (p *promises) hold(ctx context.Context, c *redlock.Client, who string, ttl time.Duration, rng *rand.Rand) {
	attempt, cancel := context.WithTimeout(ctx, ttl)
	defer cancel()
	l, err := c.Acquire(attempt, p.key, ttl)
	if err != nil {
		return
	}
	now := time.Now()
	m := promise{who, now, now.Add(l.Remaining())}
	for range rng.IntN(3) {
		pause(ctx, time.Duration(rng.Int64N(int64(ttl))))
		switch err := l.Extend(context.Background(), ttl); {
		case err == nil:
			now = time.Now()
			m.until = now.Add(l.Remaining())
		case err == redlock.ErrNotHeld && time.Now().Before(m.until):
			p.lose() // and yet nobody else may have it before
		}
	}
	if pause(ctx, time.Duration(rng.Int64N(int64(ttl)))); rng.IntN(4) > 0 {
		if now = time.Now(); now.Before(m.until) {
			m.until = now
		}
		_ = l.Release(context.Background())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made = append(p.made, m)
}

// pause is a holder's work.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// TestRealRestarts: two clients fight for three keys with brief TTLs, while three
// servers are killed in turn and started anew, the next before the last one votes
// again. Who is on guard, or has servers that forget nothing, breaks no promise.
func TestRealRestarts(t *testing.T) {
	t.Parallel()
	const brief = 400 * time.Millisecond
	for name, c := range map[string]struct {
		persistent bool
		change     func(*redlock.Config)
		forgets    bool // promises will be broken
	}{
		"on guard":             {change: func(*redlock.Config) {}},
		"strictly on guard":    {change: func(c *redlock.Config) { c.MaxTTL = brief }},
		"off guard":            {change: func(c *redlock.Config) { c.TrustRestarts = true }, forgets: true},
		"persistent":           {persistent: true, change: func(*redlock.Config) {}},
		"persistent, strictly": {persistent: true, change: func(c *redlock.Config) { c.MaxTTL = brief }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := realredis.StartN(t, 3, realredis.Options{Persistent: c.persistent})
			addrs := realAddrs(servers)
			if c.persistent {
				addrs = persistentAddrs(servers)
			}
			var heard ward
			var clients []*redlock.Client
			for i := range 2 {
				clients = append(clients, cluster.Connect(t, addrs, cluster.Portable(i == 1), cluster.NodeTimeout(100*time.Millisecond), heard.of(0), unhurried, c.change))
			}
			keys := []*promises{{key: "a"}, {key: "b"}, {key: "c"}}
			stop := compete(t, clients, keys, brief)
			killInTurn(t, servers, clients, keys, c.forgets)
			stop()

			withheld, votes := heard.take()
			require.Positive(t, votes[false])
			if c.persistent || c.forgets {
				require.Empty(t, withheld)
				require.Zero(t, votes[true])
			} else {
				require.NotEmpty(t, withheld)
				require.Positive(t, votes[true])
			}
			for _, p := range keys {
				if !c.forgets {
					require.Empty(t, p.broken(), "two at once")
				}
				if c.persistent {
					require.Zero(t, p.lost, "locks were forgotten")
				}
			}
		})
	}
}

// compete has clients contend for keys until stop is called, which waits for them.
// All have used the TTL when it returns, so that they know how long to be on guard.
func compete(t *testing.T, clients []*redlock.Client, keys []*promises, ttl time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for i, c := range clients {
		_, _ = c.TryAcquire(ctx, fmt.Sprint("first of ", i), ttl)
		for g := range 6 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				rng := rand.New(rand.NewPCG(uint64(i), uint64(g)))
				for ctx.Err() == nil {
					keys[g%len(keys)].hold(ctx, c, fmt.Sprintf("%d of client %d", g, i), ttl, rng)
				}
			}()
		}
	}
	stop = func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	return stop
}

// killInTurn kills servers and starts them anew, two at a time one right behind
// the other, and lets every key be won in between: a few times, or until a promise
// is broken.
func killInTurn(t *testing.T, servers []*realredis.Server, clients []*redlock.Client, keys []*promises, untilBroken bool) {
	deadline := time.Now().Add(testkit.Patience)
	for round := 0; ; round++ {
		for _, p := range keys {
			before := p.count()
			testkit.Await(t, "progress on "+p.key, func() bool { return p.count() > before })
		}
		broken := slices.ContainsFunc(keys, func(p *promises) bool { return p.broken() != nil })
		if broken || !untilBroken && round == 3 {
			return
		}
		require.True(t, time.Now().Before(deadline), "no promise is broken")
		restartUnder(t, servers, round%3, clients...)
		restartUnder(t, servers, (round+1)%3, clients...)
	}
}
