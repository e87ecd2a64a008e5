package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/errno"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestClosed: nothing begins after Close, which may be called again. What is held stays held.
func TestClosed(t *testing.T) {
	cluster.On(t, 3, func(t *testing.T, r *cluster.Cluster) {
		l := cluster.MustAcquire(t, r.Client, "k", ttl)
		heard := cluster.Connect(t, fakeredis.Addrs(r.Servers), cluster.Listening(new(cluster.HookRecorder)))
		reported := cluster.MustAcquire(t, heard, "another", ttl) // by hooks: its Release is another path
		require.NoError(t, heard.Close())
		require.Equal(t, redlock.ErrClosed, reported.Release(t.Context()))
		require.Positive(t, reported.Remaining())
		for range 3 {
			require.NoError(t, r.Close())
			_, inspected := r.Inspect(t.Context(), "k")
			for _, err := range []error{
				errorOf(r.TryAcquire(t.Context(), "k", ttl)), errorOf(r.Acquire(t.Context(), "k", ttl)), errorOf(r.TryAcquireAll(t.Context(), ttl, "a", "b")),
				l.Extend(t.Context(), ttl), l.Release(t.Context()), submitRefused(r.Client, "k"), inspected, r.Ready(t.Context()),
			} {
				require.Equal(t, redlock.ErrClosed, err)
			}
		}
		require.Equal(t, 3, r.Holders("k"))
		require.Positive(t, l.Remaining())
	})
}

// TestCloseLeavesNothing: no goroutine and no descriptor, in every state of the nodes.
func TestCloseLeavesNothing(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		servers := fakeredis.StartN(t, 5)
		open := testkit.Descriptors()
		for range 5 {
			c, err := redlock.New(knobs.With(redlock.Config{
				Nodes: fakeredis.Addrs(servers), Portable: portable,
				NodeTimeout: 20 * time.Millisecond, StallTimeout: 100 * time.Millisecond,
			}, func(k *knobs.Knobs) { k.CloseTimeout = 10 * time.Millisecond }))
			require.NoError(t, err)
			l := testkit.Must(c.Acquire(t.Context(), "k", ttl))(t)
			servers[0].Down()
			servers[1].Hang()
			servers[2].HangUnread()
			require.ErrorIs(t, l.Release(t.Context()), redlock.ErrNoQuorum)
			require.ErrorIs(t, errorOf(c.TryAcquire(t.Context(), "another", ttl)), redlock.ErrNoQuorum)
			require.NoError(t, c.Close())
			for _, s := range servers {
				require.NoError(t, s.Heal())
				testkit.Await(t, "no connections", func() bool { return s.Conns() == 0 })
				s.Flush()
			}
			testkit.Await(t, "no goroutines", func() bool { return testkit.Goroutines() == "" })
		}
		testkit.Await(t, "no descriptors", func() bool { return testkit.Descriptors() <= open })
	})
}

// TestShutdown: no lock of a function of Do is left at the nodes, and none is acquired any more.
func TestShutdown(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		const locks = 1000
		r := cluster.New(t, 3)
		var all, inside sync.WaitGroup
		inside.Add(locks)
		for i := range locks {
			all.Go(func() {
				err := r.Do(t.Context(), fmt.Sprint(i), ttl, func(ctx context.Context) error {
					inside.Done()
					<-ctx.Done()
					require.Equal(t, redlock.ErrClosed, context.Cause(ctx))
					time.Sleep(time.Duration(i%10) * 10 * time.Millisecond) // its work is ended first
					return nil
				})
				require.NoError(t, err)
			})
		}
		inside.Wait()
		own := cluster.MustAcquire(t, r.Client, "own", ttl)
		kept, stop := own.KeepAlive(t.Context())
		defer stop()
		waiter := testkit.InBackground(func() (redlock.Lock, error) { return r.Acquire(t.Context(), "own", ttl) })
		time.Sleep(10 * time.Millisecond)
		down := testkit.Start(func() error { return r.Shutdown(t.Context()) })
		require.Equal(t, redlock.ErrClosed, testkit.Get(t, waiter).Err)
		testkit.Get(t, kept.Done())
		require.Equal(t, redlock.ErrClosed, context.Cause(kept))
		for range 2 {
			require.Equal(t, redlock.ErrClosed, errorOf(r.TryAcquire(t.Context(), "new", ttl)))
			require.Equal(t, redlock.ErrClosed, r.Do(t.Context(), "new", ttl, nothing))
			require.Equal(t, redlock.ErrClosed, submitRefused(r.Client, "new"))
		}
		require.NoError(t, own.Release(t.Context()), "while functions are waited for")
		require.NoError(t, testkit.Get(t, down))
		all.Wait()
		r.Servers.Each(func(s *fakeredis.Server) { require.Zero(t, s.Len()) })
		require.NoError(t, r.Shutdown(t.Context()), "again")
		require.NoError(t, r.Close())
	})
}

func nothing(context.Context) error { return nil }

// TestShutdownIsBounded by its context, and by Close. Nothing begins then, and locks that are held end with their TTL.
func TestShutdownIsBounded(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		for name, end := range map[string]func(r *cluster.Cluster, cancel func()){
			"context": func(_ *cluster.Cluster, cancel func()) { cancel() },
			"Close":   func(r *cluster.Cluster, _ func()) { require.NoError(t, r.Close()) },
		} {
			r := cluster.New(t, 3)
			leave, done := inDo(t, r.Client, "k")
			l := cluster.MustAcquire(t, r.Client, "own", ttl)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			down := testkit.Start(func() error { return r.Shutdown(ctx) })
			time.Sleep(time.Second)
			require.Empty(t, down)
			began := time.Now()
			end(r, cancel)
			require.ErrorIs(t, testkit.Get(t, down), map[string]error{"context": context.Canceled}[name])
			require.LessOrEqual(t, time.Since(began), time.Second)
			require.Equal(t, 6, r.Holders("k")+r.Holders("own"))
			require.Positive(t, l.Remaining())
			leave()
			require.Equal(t, redlock.ErrClosed, testkit.As[*redlock.LostError](t, testkit.Get(t, done)).Cause)
		}
	})
}

// TestShutdownAndLateCalls: a call too late for a lock is not waited for.
func TestShutdownAndLateCalls(t *testing.T) {
	cluster.On(t, 3, func(t *testing.T, r *cluster.Cluster) {
		leave, done := inDo(t, r.Client, "k")
		down := testkit.Start(func() error { return r.Shutdown(t.Context()) })
		time.Sleep(time.Millisecond)
		goOn := make(chan struct{})
		slow := userContext{t.Context(), in("Err", func() { <-goOn })}
		late := testkit.Start(func() error { return r.Do(slow, "late", ttl, nothing) })
		time.Sleep(time.Millisecond)
		leave()
		require.NoError(t, testkit.Get(t, done))
		time.Sleep(time.Second)
		ended := len(down) > 0
		close(goOn)
		require.True(t, ended, "it waits for a call that has no lock")
		require.NoError(t, testkit.Get(t, down))
		require.Equal(t, redlock.ErrClosed, testkit.Get(t, late))
	})
}

// TestSilence: the reason that keeps a client from working is logged once, and again when it changes.
func TestSilence(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		servers := cluster.Start(t, 3)
		servers.Down()
		var log testkit.LogSink
		before := slog.Default()
		slog.SetDefault(log.Logger(slog.LevelDebug))
		defer slog.SetDefault(before)
		r := cluster.Of(t, servers, func(c *redlock.Config) { c.Logger = nil })
		testkit.Await(t, "the warning", func() bool { return strings.Contains(log.String(), "no lock can be acquired yet") })
		servers.Each(func(s *fakeredis.Server) {
			require.Regexp(t, "no lock can be acquired yet.*"+s.Addr()+" "+errno.ConnRefused.Error(), log.String())
		})
		time.Sleep(10 * time.Second)
		require.Equal(t, 4, strings.Count(log.String(), "\n"), "each node, and the client, once: %s", log.String())

		require.NoError(t, servers[0].Heal())
		cluster.AwaitNodesUp(t, r.Client, 1)
		lines := func(part string) (n int) {
			for line := range strings.Lines(log.String()) {
				if strings.Contains(line, "redlock: node ") && strings.Contains(line, part) {
					n++
				}
			}
			return n
		}
		rotated, protected, refused := "server refused the credentials", "in protected mode", errno.ConnRefused.Error()
		require.Equal(t, 3, lines(refused))
		servers[0].RejectConns("WRONGPASS invalid username-password pair or user is disabled.")
		servers[0].ResetConns()
		time.Sleep(5 * time.Second)
		require.Equal(t, 1, lines(rotated), log.String())
		servers[0].RejectConns("DENIED Redis is running in protected mode because protected mode is enabled")
		time.Sleep(5 * time.Second)
		require.Equal(t, 1, lines(protected), log.String())
		servers[0].Down()
		time.Sleep(5 * time.Second)
		require.Equal(t, 4, lines(refused), log.String())
		require.NoError(t, servers[0].Heal())
		servers[0].RejectConns("WRONGPASS invalid username-password pair or user is disabled.")
		time.Sleep(5 * time.Second)
		require.LessOrEqual(t, lines(rotated), 2, log.String())
		require.NotContains(t, log.String(), "level=INFO")
	})
}

// TestEndsCountWhatIsGiven: no key is left by a lock that is given back beside waiters, right before the client ends. A
// waiter that has got it in time keeps it, as any holder.
func TestEndsCountWhatIsGiven(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		const rounds = 10
		servers := cluster.Start(t, 3)
		gives := map[string]func(c *redlock.Client, key string) (giveBack func()){
			"Release": func(c *redlock.Client, key string) func() {
				l := cluster.MustAcquire(t, c, key, ttl)
				return func() { require.NoError(t, l.Release(t.Context())) }
			},
			"ReleaseAsync": func(c *redlock.Client, key string) func() { return cluster.MustAcquire(t, c, key, ttl).ReleaseAsync },
			"Do": func(c *redlock.Client, key string) func() {
				leave, done := inDo(t, c, key)
				return func() { leave(); require.NoError(t, testkit.Outcome(t, "Do", done)) }
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
							c, key := cluster.Connect(t, fakeredis.Addrs(servers), cluster.DefaultTimeouts), fmt.Sprint("given:", how, name, waiters, inDo, round)
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
							if (got.Load() == 0 || inDo && name == "Shutdown") && servers.Holders(key) > 0 {
								left++
							}
						}
						require.Zero(t, left, "keys left by %s and %s beside %d waiters, in Do: %v, of %d rounds", how, name, waiters, inDo, rounds)
					}
				}
			}
		}
	})
}
