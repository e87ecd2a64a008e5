package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestRealSharedPrivileges: the documented list is enough for the whole life of shared locks, and each part of it that other
// locks do not need is needed. A script that fails for want of one leaves no key without an end.
func TestRealSharedPrivileges(t *testing.T) {
	t.Parallel()
	list := documented("shared:")
	require.Subset(t, list.privileges, least.privileges)
	realredis.EachKind(t, func(t *testing.T, kind realredis.Kind) {
		admins, nodes := list.servers(t, kind)
		life := func() int64 {
			var forbidden atomic.Int64
			c := cluster.Connect(t, nodes, func(c *redlock.Config) {
				c.Hooks.Vote = func(v redlock.Vote) {
					if errors.Is(v.Err, conn.ErrForbidden) {
						forbidden.Add(1)
					}
				}
			})
			for i := range 200 {
				var some []redlock.Lock
				for range 2 {
					if l, err := c.TryAcquireShared(t.Context(), "lock:p", ttl/time.Duration(1+i%3)); err == nil {
						some = append(some, l)
					}
				}
				for _, l := range some {
					_ = l.Extend(t.Context(), ttl)
					_ = l.Release(t.Context())
				}
				if i%40 == 0 {
					for _, a := range admins {
						require.NotEqual(t, ":-1", a.Do("PTTL lock:p"))
						a.Must("SCRIPT FLUSH")
					}
				}
			}
			require.NoError(t, c.Close())
			return forbidden.Load()
		}
		require.Zero(t, life())
		isOther := func(privilege string) bool { return slices.Contains(least.privileges, privilege) }
		withoutEach(admins, slices.DeleteFunc(slices.Clone(list.privileges), isOther), func(privilege string) {
			require.NotZero(t, life(), privilege)
		})
		require.Zero(t, life())
	})
}

// TestRealSharedExcludes: readers of two clients hold a key together, beside no writer of a third and no SET NX of another
// program, while a server is killed and comes back empty.
func TestRealSharedExcludes(t *testing.T) {
	t.Parallel()
	realredis.EachKind(t, func(t *testing.T, kind realredis.Kind) {
		servers := realredis.StartN(t, 3, realredis.Options{Kind: kind})
		nodes := cluster.RealAddrs(servers)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var readers, writers, reads, writes, together atomic.Int64
		var calls []<-chan testkit.Result[int]
		loop := func(f func(c *redlock.Client)) {
			c := cluster.Connect(t, nodes)
			calls = append(calls, testkit.InBackground(func() (n int, _ error) {
				for ctx.Err() == nil {
					f(c)
					time.Sleep(time.Millisecond)
				}
				return n, nil
			}))
		}
		fails := make(chan string, 100)
		check := func(alone bool) {
			if w, r := writers.Load(), readers.Load(); w > 1 || w > 0 && r > 0 {
				select {
				case fails <- fmt.Sprint(w, " writers, ", r, " readers"):
				default:
				}
			} else if !alone && r > 1 {
				together.Add(1)
			}
		}
		work := func(those, done *atomic.Int64, alone bool) func(context.Context) error {
			return func(context.Context) error {
				those.Add(1)
				defer those.Add(-1)
				check(alone)
				time.Sleep(time.Millisecond)
				check(alone)
				done.Add(1)
				return nil
			}
		}
		for range 5 {
			loop(func(c *redlock.Client) { _ = c.TryDoShared(ctx, "k", time.Second, work(&readers, &reads, false)) })
		}
		loop(func(c *redlock.Client) { _ = c.Do(ctx, "k", time.Second, work(&writers, &writes, true)) })
		time.Sleep(500 * time.Millisecond)
		require.NoError(t, servers[1].Kill())
		require.NoError(t, servers[1].Restart())
		time.Sleep(2 * time.Second)
		testkit.Await(t, "a writer, and two readers together", func() bool { return writes.Load() > 0 && together.Load() > 0 })
		stop()
		for _, call := range calls {
			testkit.Get(t, call)
		}
		require.Empty(t, fails)
		t.Log(reads.Load(), "reads", writes.Load(), "writes")
	})
}
