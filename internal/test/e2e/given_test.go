package e2e

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestEndsCountWhatIsGiven: no key is left by a lock that is given back beside waiters, right before the client ends. A
// waiter that has got it in time keeps it, as any holder.
func TestEndsCountWhatIsGiven(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		servers := cluster.Start(t, 3)
		givenBeforeTheEnd(t, 10, func() *redlock.Client { return cluster.Connect(t, fakeredis.Addrs(servers), cluster.DefaultTimeouts) }, servers.Holders)
	})
}

// TestRealEndsCountWhatIsGiven runs 5 rounds of each, or REDLOCK_ROUNDS.
func TestRealEndsCountWhatIsGiven(t *testing.T) {
	rounds, err := strconv.Atoi(os.Getenv("REDLOCK_ROUNDS"))
	if err != nil {
		rounds = 5
	}
	servers := realredis.StartN(t, 3)
	givenBeforeTheEnd(t, rounds, func() *redlock.Client { return cluster.Connect(t, cluster.RealAddrs(servers), cluster.DefaultTimeouts) }, func(key string) (n int) {
		for _, s := range servers {
			if cluster.NewAdmin(t, s).Do("EXISTS "+key) == ":1" {
				n++
			}
		}
		return n
	})
}

func givenBeforeTheEnd(t *testing.T, rounds int, connect func() *redlock.Client, holders func(key string) int) {
	gives := map[string]func(c *redlock.Client, key string) (giveBack func()){
		"Release": func(c *redlock.Client, key string) func() {
			l := cluster.MustAcquire(t, c, key, ttl)
			return func() { require.NoError(t, l.Release(t.Context())) }
		},
		"ReleaseAsync": func(c *redlock.Client, key string) func() { return cluster.MustAcquire(t, c, key, ttl).ReleaseAsync },
		"Do": func(c *redlock.Client, key string) func() {
			inside, leave := make(chan struct{}), make(chan struct{})
			done := testkit.Start(func() error { return c.Do(t.Context(), key, ttl, until(inside, leave)) })
			<-inside
			return func() { close(leave); require.NoError(t, testkit.Outcome(t, "Do", done)) }
		},
	}
	ends := map[string]func(c *redlock.Client){
		"Shutdown": func(c *redlock.Client) { require.NoError(t, c.Shutdown(t.Context())) },
		"Close":    func(c *redlock.Client) { require.NoError(t, c.Close()) },
	}
	for how, give := range gives {
		for name, end := range ends {
			for _, waiters := range []int{1, 50} {
				for _, inDo := range []bool{false, true} {
					left := 0
					for round := range rounds {
						c, key := connect(), fmt.Sprint("given:", how, name, waiters, inDo, round)
						giveBack := give(c, key)
						var got atomic.Int64
						var all sync.WaitGroup
						for range waiters {
							all.Go(func() {
								if inDo {
									_ = c.Do(t.Context(), key, ttl, func(context.Context) error { got.Add(1); return nil })
								} else if _, err := c.Acquire(t.Context(), key, ttl); err == nil {
									got.Add(1)
								}
							})
						}
						testkit.Await(t, "in line", func() bool { return c.Stats().InLine == waiters })
						giveBack()
						end(c)
						all.Wait()
						if (got.Load() == 0 || inDo && name == "Shutdown") && holders(key) > 0 {
							left++
						}
					}
					require.Zero(t, left, "keys left by %s and %s beside %d waiters, in Do: %v, of %d rounds", how, name, waiters, inDo, rounds)
				}
			}
		}
	}
}
