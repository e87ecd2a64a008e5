package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

// fenceTTL is the longest TTL in tests of fencing, and so a quarantine.
const fenceTTL = 300 * time.Millisecond

// fenced makes a client fenced, by a wrong clock.
func fenced(off time.Duration) func(*redlock.Config) {
	return func(c *redlock.Config) {
		c.Fenced, c.MaxTTL = true, fenceTTL
		k := knobs.Of(c)
		k.TrustRestarts, k.FenceClock = true, func() time.Time { return virtual.TimeOfDay().Add(off) }
	}
}

// TestFencedStartIsSilent: where nodes have their vote in fencing New warns of nothing. It has asked them before it says that
// they have none.
func TestFencedStartIsSilent(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		nodes := fakeredis.Addrs(cluster.Start(t, 3))
		for _, warnings := range []int{1, 0} {
			var log testkit.LogSink
			c := cluster.Connect(t, nodes, fenced(0), func(c *redlock.Config) { c.Logger = log.Logger(slog.LevelWarn) })
			time.Sleep(2 * time.Second)
			cluster.AwaitHooks(t, c)
			require.Equal(t, warnings, strings.Count(log.String(), "no lock can be acquired yet"), log.String())
			require.True(t, warnings > 0 || log.String() == "")
			require.NoError(t, c.InitFencing(t.Context()))
		}
	})
}

// TestFence: tokens grow from lock to lock, by clocks hours apart, for each key of several, and for
// each holder of a lock in a hand-over.
func TestFence(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		nodes := fakeredis.Addrs(cluster.Start(t, 3))
		first := cluster.Connect(t, nodes, fenced(0))
		_, err := first.TryAcquire(t.Context(), "k", fenceTTL)
		requireOnly(t, err, redlock.ErrForgotten)
		require.ErrorContains(t, err, "InitFencing")
		require.ErrorIs(t, cluster.Submit(t, first, &redlock.Op{Kind: redlock.OpAcquire, Key: []byte("k"), TTL: fenceTTL}), redlock.ErrForgotten)
		require.NoError(t, first.InitFencing(t.Context()))
		require.NoError(t, first.InitFencing(t.Context()), "again, at once")
		_, inspected := first.Inspect(t.Context(), fenceSet)
		for _, err := range []error{
			errorOf(first.TryAcquire(t.Context(), fenceSet, fenceTTL)), errorOf(first.TryAcquireAll(t.Context(), fenceTTL, "a", fenceSet)),
			first.Submit(acquireOp(fenceSet)), inspected,
		} {
			require.ErrorIs(t, err, redlock.ErrArgument)
		}

		var last uint64
		grows := func(l redlock.Lock) {
			t.Helper()
			require.Greater(t, l.Fence(), last)
			last = l.Fence()
		}
		clients := []*redlock.Client{first, cluster.Connect(t, nodes, fenced(time.Hour)), cluster.Connect(t, nodes, fenced(-time.Hour))}
		plain := cluster.Connect(t, nodes)
		for range 3 {
			for _, c := range clients {
				l := cluster.MustAcquire(t, c, "k", fenceTTL)
				grows(l)
				for _, other := range append(clients, plain) {
					require.ErrorIs(t, errorOf(other.TryAcquire(t.Context(), "k", fenceTTL)), redlock.ErrTaken)
				}
				require.NoError(t, l.Extend(t.Context(), fenceTTL))
				require.Equal(t, last, l.Fence())
				require.NoError(t, l.Release(t.Context()))
			}
		}
		l := testkit.Must(first.TryAcquireAll(t.Context(), fenceTTL, "other", "k"))(t)
		grows(l)
		require.NoError(t, l.Release(t.Context()))
		op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte("k"), TTL: fenceTTL}
		require.NoError(t, cluster.Submit(t, first, op))
		require.Greater(t, op.Fence(), last)
		last = op.Fence()
		require.NoError(t, submitAs(t, first, op, redlock.OpRelease))
		require.NoError(t, submitAs(t, plain, op, redlock.OpAcquire))
		require.Zero(t, op.Fence(), "it has no token of another client")
		require.NoError(t, submitAs(t, plain, op, redlock.OpRelease))

		l = cluster.MustAcquire(t, plain, "k", fenceTTL)
		require.Zero(t, l.Fence())
		require.NoError(t, l.Release(t.Context()))

		l = cluster.MustAcquire(t, first, "k", fenceTTL)
		grows(l)
		for range 100 { // some are handed over, some are granted by the nodes
			next := testkit.InBackground(func() (redlock.Lock, error) { return first.Acquire(t.Context(), "k", fenceTTL) })
			testkit.Await(t, "in line", func() bool { return first.Stats().InLine == 1 })
			require.NoError(t, l.Release(t.Context()))
			l = locked(t, next)
			grows(l)
		}
		require.NotZero(t, first.Stats().HandedOver)
	})
}

const fenceSet = "redlock:fence"

// TestFenceSuspended: a machine suspended between a notice and its answer counts the quarantine from the answer on.
func TestFenceSuspended(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3, fenced(0))
		require.NoError(t, r.InitFencing(t.Context()))
		var noticed time.Time
		quarantine := make(chan time.Duration, 1)
		r.Servers[0].Flush()
		r.Servers[0].OnCommand(func(_ int64, args []string) {
			switch {
			case slices.Contains(args, "notice") && noticed.IsZero():
				r.Machine.Skip(time.Hour)
				noticed = time.Now()
			case slices.Contains(args, "rejoin") && !noticed.IsZero() && len(quarantine) == 0: // none of an earlier notice
				quarantine <- time.Since(noticed)
			}
		})
		_, _ = r.TryAcquire(t.Context(), "k", fenceTTL) // it finds out
		require.Greater(t, testkit.Get(t, quarantine), fenceTTL)
	})
}

// TestCollectTrustsNoClient: a client whose clock is far ahead does not raise the floor of all keys. What is collected follows
// from the node's time.
func TestCollectTrustsNoClient(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		s := cluster.Start(t, 1)
		c := cluster.Connect(t, fakeredis.Addrs(s), fenced(24*time.Hour))
		require.NoError(t, c.InitFencing(t.Context()))
		token := cluster.MustAcquire(t, c, "k", fenceTTL).Fence()
		time.Sleep(2 * time.Second)
		n, _ := s[0].Fence(fenceSet)
		require.Len(t, n.Tokens, 1)
		require.Less(t, uint64(n.Floor), token)
		s[0].SetClock(time.Until(virtual.TimeOfDay()) + 48*time.Hour)
		time.Sleep(2 * time.Second)
		n, _ = s[0].Fence(fenceSet)
		require.Empty(t, n.Tokens)
		require.InDelta(t, virtual.TimeOfDay().Add(48*time.Hour-time.Hour).UnixMicro(), float64(n.Floor), 60e6)
	})
}

// TestFenceBadInput: an impossible clock refuses its own client by name and value; so does an
// operator's number without room for tokens. The log shows a number exceeded by nodes.
func TestFenceBadInput(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		var log testkit.LogSink
		var year atomic.Int64
		c := cluster.New(t, 3, fenced(0), func(c *redlock.Config) {
			c.Logger = log.Logger(slog.LevelInfo)
			knobs.Of(c).FenceClock = func() time.Time {
				if y := year.Load(); y != 0 {
					return time.Date(int(y), 1, 1, 0, 0, 0, 0, time.UTC)
				}
				return virtual.TimeOfDay()
			}
		})
		for _, atLeast := range []uint64{0, 1<<53 - 1} {
			require.ErrorIs(t, c.RecoverFencing(t.Context(), atLeast), redlock.ErrArgument)
		}
		require.NoError(t, c.InitFencing(t.Context()))
		held := cluster.MustAcquire(t, c.Client, "k", fenceTTL)
		token := held.Fence()
		next := testkit.InBackground(func() (redlock.Lock, error) { return c.Acquire(t.Context(), "k", fenceTTL) })
		testkit.Await(t, "in line", func() bool { return c.Stats().InLine == 1 })
		for _, y := range []int64{1970, 2019, 2256, 2999, 1} {
			year.Store(y)
			for _, err := range []error{
				errorOf(c.TryAcquire(t.Context(), "other", fenceTTL)), errorOf(c.Acquire(t.Context(), "other", fenceTTL)),
				errorOf(c.TryAcquireAll(t.Context(), fenceTTL, "a", "b")), c.InitFencing(t.Context()),
				c.Submit(&redlock.Op{Kind: redlock.OpAcquire, Key: []byte("k"), TTL: fenceTTL, Done: func(*redlock.Op) {}}),
			} {
				require.ErrorIs(t, err, redlock.ErrConfig)
				require.ErrorContains(t, err, fmt.Sprintf("the clock reads %04d-01-01T00:00:00Z", y))
			}
		}
		_ = held.Token() // it is not passed on
		require.NoError(t, held.Release(t.Context()))
		require.ErrorIs(t, testkit.Get(t, next).Err, redlock.ErrConfig)
		require.Equal(t, cluster.Waits{Failed: 1, Total: c.Stats().Waits.Total, Longest: c.Stats().Waits.Total}, c.Stats().Waits)
		year.Store(0)
		c.Servers[:2].Flush()
		require.NoError(t, c.RecoverFencing(t.Context(), token-1000))
		cluster.AwaitHooks(t, c.Client)
		require.Contains(t, log.String(), fmt.Sprintf("the greater counts\" atLeast=%d shown=", token-1000))
		require.Contains(t, log.String(), "restart no other node until it has")
		l := testkit.Must(c.Acquire(t.Context(), "k", fenceTTL))(t)
		require.Greater(t, l.Fence(), token)

		high := token + uint64(time.Hour/time.Microsecond)
		require.NoError(t, c.RecoverFencing(t.Context(), high), "all have their vote: they are raised")
		require.Greater(t, cluster.MustAcquire(t, c.Client, "another", fenceTTL).Fence(), high)
	})
}

// TestFenceFrom: the function of Do, and contexts below that of KeepAlive, have the token.
func TestFenceFrom(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		nodes := fakeredis.Addrs(cluster.Start(t, 3))
		c, plain := cluster.Connect(t, nodes, fenced(0)), cluster.Connect(t, nodes)
		require.NoError(t, c.InitFencing(t.Context()))
		_, ok := redlock.FenceFrom(t.Context())
		require.False(t, ok)
		require.NoError(t, c.Do(t.Context(), "k", fenceTTL, func(outer context.Context) error {
			first, ok := redlock.FenceFrom(outer)
			require.True(t, ok)
			type name struct{}
			below := context.WithValue(outer, name{}, "value")
			again, _ := redlock.FenceFrom(below)
			require.Equal(t, first, again)
			l := cluster.MustAcquire(t, c, "other", fenceTTL)
			kept, stop := l.KeepAlive(below)
			defer stop()
			require.Equal(t, "value", kept.Value(name{}))
			inner, _ := redlock.FenceFrom(kept)
			require.Equal(t, l.Fence(), inner)
			return plain.Do(kept, "third", fenceTTL, func(ctx context.Context) error {
				_, ok := redlock.FenceFrom(ctx)
				require.False(t, ok, "the token of another lock")
				return nil
			})
		}))
	})
}
