package e2e

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
	admins := cluster.NewAdmins(t, servers)
	givenBeforeTheEnd(t, rounds, func() *redlock.Client {
		return cluster.Connect(t, cluster.RealAddrs(servers), cluster.DefaultTimeouts, cluster.NodeTimeout(time.Second))
	}, func(key string) (n int) {
		for _, a := range admins {
			if a.Do("EXISTS "+key) == ":1" {
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

// TestShutdownInAHook of Do returns, in every hook of an acquire: the call ends with ErrClosed, and leaves no key. The
// functions of other calls are waited for.
func TestShutdownInAHook(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		servers := cluster.Start(t, 3)
		for i, of := range []struct {
			waits, won, acquire bool // the call waits; the hook hears of a lock; it is Hooks.Acquire
		}{{true, false, false}, {true, true, false}, {false, true, false}, {true, true, true}, {false, true, true}, {true, false, true}} {
			var r *redlock.Client
			var once sync.Once
			key, returned := fmt.Sprint("k", i), make(chan error, 1)
			hook := func(acquire bool, of string, err error, isOf bool) {
				if acquire == isOf && of == key && err != redlock.ErrClosed {
					once.Do(func() { returned <- r.Shutdown(context.Background()) })
				}
			}
			r = cluster.Connect(t, fakeredis.Addrs(servers), cluster.DefaultTimeouts, func(c *redlock.Config) {
				c.Hooks.Attempt = func(a redlock.Attempt) {
					if a.Kind == redlock.OpAcquire && (a.Err == nil) == of.won {
						hook(false, a.Key, a.Err, of.acquire)
					}
				}
				c.Hooks.Acquire = func(a redlock.Acquisition) {
					if (a.Err == nil) == of.won {
						hook(true, a.Key, a.Err, of.acquire)
					}
				}
			})
			inside, leave := make(chan struct{}), make(chan struct{})
			other := testkit.Start(func() error { return r.Do(t.Context(), "other "+key, ttl, until(inside, leave)) })
			<-inside
			if of.waits {
				servers.Each(func(s *fakeredis.Server) { s.Set(key, "another's", 0) })
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			done := testkit.Start(func() error {
				return r.Do(ctx, key, ttl, func(context.Context) error { t.Error("called"); return nil })
			})
			time.Sleep(time.Second)
			if of.waits && of.won {
				servers.Del(key)
			}
			time.Sleep(10 * time.Second)
			require.Empty(t, returned, "%+v: the other's function is waited for", of)
			close(leave)
			require.NoError(t, testkit.Outcome(t, "Shutdown in a hook", returned), "%+v", of)
			require.NoError(t, testkit.Outcome(t, "the other's Do", other))
			err := testkit.Outcome(t, "Do", done)
			cancel()
			if !of.acquire || of.won {
				require.Equal(t, redlock.ErrClosed, err, "%+v", of)
			}
			servers.Del(map[bool]string{true: key}[of.waits && !of.won])
			servers.Each(func(s *fakeredis.Server) { require.Zero(t, s.Len(), "%+v: %q", of, s.Keys()) })
		}
	})
}
