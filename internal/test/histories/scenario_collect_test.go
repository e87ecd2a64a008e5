package histories

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// pool is a crowd for any of eight permits: as a rule not all of them are free at once.
type pool struct {
	*crowd
	keys    []string
	clients []*redlock.Client
	leave   []func() // end the callers for any, of each client
}

// beside makes a pool beside 32 callers without a pause.
func beside(t *testing.T, groups, clients int, change func(*redlock.Config), run func(p *pool)) {
	gather(t, 3*groups, time.Minute, func(c *crowd) {
		p := &pool{crowd: c, keys: permitsIn(8, groups)}
		for range clients {
			ctx, cancel := context.WithCancel(c.ctx)
			var all sync.WaitGroup
			leave := func() { cancel(); all.Wait() }
			p.leave = append(p.leave, leave)
			defer leave()
			one := c.ready(func(cfg *redlock.Config) {
				change(cfg)
				if groups > 1 {
					cfg.Nodes, cfg.Groups = nil, [][]string{c.Nodes[:3], c.Nodes[3:]}
				}
			})
			p.clients = append(p.clients, one)
			for range 32 / clients {
				all.Go(func() {
					time.Sleep(rand.N(10 * time.Millisecond))
					serve(ctx, func() time.Duration { return 5 * time.Millisecond }, anyOf(one, p.keys...))
				})
			}
		}
		time.Sleep(500*time.Millisecond + rand.N(time.Second))
		run(p)
	})
}

// permitsIn is so many keys, of each group as many.
func permitsIn(n, groups int) (keys []string) {
	for i := 0; len(keys) < n; i++ {
		if key := fmt.Sprint("p", i); groups == 1 || client.Number(key, groups) == len(keys)%groups {
			keys = append(keys, key)
		}
	}
	return keys
}

// TestSetBesideChoices: a set of all permits has its lock within two seconds, and a turn for each. Sets that collect do
// not wait for each other. Callers in step leave a set no key for as long as they are: each run has a world of its own.
func TestSetBesideChoices(t *testing.T) {
	runs := 2
	switch {
	case testkit.Long():
		runs = 20
	case testkit.Race:
		runs = 1
	}
	for _, of := range []struct{ groups, clients, sets int }{{1, 2, 1}, {2, 2, 1}, {1, 8, 1}, {1, 8, 3}} {
		t.Run(fmt.Sprintf("%d groups, %d clients, %d sets", of.groups, of.clients, of.sets), func(t *testing.T) {
			t.Parallel()
			longest, collected := time.Duration(0), 0
			for range runs {
				beside(t, of.groups, of.clients, func(*redlock.Config) {}, func(p *pool) {
					var sets sync.WaitGroup
					for i := range of.sets {
						sets.Go(func() {
							began := time.Now()
							l, err := p.clients[i%of.clients].AcquireAll(p.ctx, longTTL, p.keys...)
							took := time.Since(began)
							if assert.NoError(p.T, err) {
								assert.NoError(p.T, l.Release(p.ctx))
							}
							p.mu.Lock() // across no wait: the bubble would stand still
							defer p.mu.Unlock()
							longest = max(longest, took)
							if took > 2*time.Second {
								collected++
							}
						})
					}
					sets.Wait()
				})
			}
			t.Logf("longest wait %v; %d of %d have collected", longest, collected, runs*of.sets)
			assert.LessOrEqual(t, longest, 3*time.Second+time.Duration(of.sets-1)*time.Second)
		})
	}
}

// collects begins a set of all permits, and returns when it has had to collect some; nil: it had its lock before.
func (p *pool) collects(ctx context.Context, c *redlock.Client, set locking) (done chan struct{}) {
	done = make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		if l, err := set(ctx); err == nil {
			_ = l.Release(context.Background())
		}
	}()
	for !testkit.IsClosed(done) {
		if c.Stats().KeptAlive > 2 {
			return done
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// TestCollectedIsGivenBack: what a set has collected stays at no node after its caller has left, by each way out.
func TestCollectedIsGivenBack(t *testing.T) {
	for name, end := range map[string]func(c *redlock.Client, cancel func()){
		"its context": func(_ *redlock.Client, cancel func()) { cancel() },
		"Wait":        func(*redlock.Client, func()) {}, // over soon
		"Close":       func(c *redlock.Client, _ func()) { _ = c.Close() },
		"Shutdown":    func(c *redlock.Client, _ func()) { _ = c.Shutdown(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for tries, collected := 0, 0; collected < 3; tries++ {
				require.Less(t, tries, 50, "no set had to collect")
				beside(t, 1, 8, func(*redlock.Config) {}, func(p *pool) {
					ctx, cancel := context.WithCancel(p.ctx)
					defer cancel()
					c := p.clients[0]
					if name == "Wait" {
						c = c.With(redlock.Options{Wait: 2200 * time.Millisecond})
					}
					done := p.collects(ctx, p.clients[0], allOf(c, p.keys...))
					if done == nil {
						return
					}
					collected++
					p.Servers.Delay(5 * time.Millisecond) // the client ends while the next key is asked for
					p.leave[0]()                          // else the end of their client leaves their locks
					end(p.clients[0], cancel)
					<-done
					for _, leave := range p.leave[1:] {
						leave()
					}
					time.Sleep(promptly)
					for _, key := range p.keys {
						assert.Zero(p.T, p.Holders(key), key)
					}
				})
			}
		})
	}
}
