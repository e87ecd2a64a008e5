package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
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

const fenceSet = "redlock:fence"

// TestFenceSuspended: a machine suspended between a notice and its answer counts the quarantine
// from the answer on.
func TestFenceSuspended(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		servers := cluster.Start(t, 3)
		machine := cluster.NewMachine(t)
		c := cluster.ConnectOn(t, machine, fakeredis.Addrs(servers), fenced(0))
		require.NoError(t, c.InitFencing(t.Context()))
		var noticed time.Time
		quarantine := make(chan time.Duration, 1)
		servers[0].Flush()
		servers[0].OnCommand(func(_ int64, args []string) {
			switch {
			case slices.Contains(args, "notice") && noticed.IsZero():
				machine.Skip(time.Hour)
				noticed = time.Now()
			case slices.Contains(args, "rejoin") && !noticed.IsZero() && len(quarantine) == 0: // none of an earlier notice
				quarantine <- time.Since(noticed)
			}
		})
		_, _ = c.TryAcquire(t.Context(), "k", fenceTTL) // it finds out
		require.Greater(t, testkit.Get(t, quarantine), fenceTTL)
	})
}

// TestInitFencingEnds: with its context, and with the client.
func TestInitFencingEnds(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		nodes := fakeredis.Addrs(cluster.Start(t, 3))
		ctx := ended(t)
		c := cluster.Connect(t, nodes, fenced(0))
		require.ErrorIs(t, c.InitFencing(ctx), context.Canceled)
		initialized := testkit.Start(func() error { return c.InitFencing(t.Context()) })
		require.NoError(t, c.Close())
		require.ErrorIs(t, testkit.Outcome(t, "InitFencing", initialized), redlock.ErrClosed)
	})
}

// TestFenceSetOfAnotherType: an error of each node, not an endless loop; all goes well once
// the key is gone.
func TestFenceSetOfAnotherType(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		servers := cluster.Start(t, 3)
		servers.Each(func(s *fakeredis.Server) { s.Plant(fenceSet, "list") })
		c := cluster.Connect(t, fakeredis.Addrs(servers), fenced(0))
		_, err := c.TryAcquire(t.Context(), "k", fenceTTL)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.ErrorContains(t, err, "WRONGTYPE")
		servers.Del(fenceSet)
		require.NoError(t, c.InitFencing(t.Context()))
		cluster.MustAcquire(t, c, "k", fenceTTL)
		for name, err := range map[string]error{
			"AcquireAll": func() error { _, err := c.TryAcquireAll(t.Context(), fenceTTL, "a", fenceSet); return err }(),
			"Submit":     c.Submit(&redlock.Op{Kind: redlock.OpAcquire, Key: []byte(fenceSet), TTL: fenceTTL, Done: func(*redlock.Op) {}}),
			"Inspect":    func() error { _, err := c.Inspect(t.Context(), fenceSet); return err }(),
		} {
			require.ErrorIs(t, err, redlock.ErrArgument, name)
		}
	})
}

// TestFenceClockPanics: only in its caller, which holds nothing then; the client goes on.
func TestFenceClockPanics(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		servers := cluster.Start(t, 3)
		var broken atomic.Bool
		c := cluster.Connect(t, fakeredis.Addrs(servers), fenced(0), func(c *redlock.Config) {
			knobs.Of(c).FenceClock = func() time.Time {
				if broken.Load() {
					panic(errors.New("clock"))
				}
				return virtual.TimeOfDay()
			}
		})
		require.NoError(t, c.InitFencing(t.Context()))
		l := cluster.MustAcquire(t, c, "k", fenceTTL)
		waits := testkit.InBackground(func() (redlock.Lock, error) { return c.Acquire(t.Context(), "k", fenceTTL) })
		testkit.Await(t, "in line", func() bool { return c.Stats().InLine == 1 })
		broken.Store(true)
		require.Panics(t, func() { _, _ = c.TryAcquire(t.Context(), "other", fenceTTL) })
		require.Panics(t, func() { _, _ = c.TryAcquireAll(t.Context(), fenceTTL, "a", "b") })
		require.Panics(t, func() { _ = c.InitFencing(t.Context()) })
		op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte("op"), TTL: fenceTTL}
		op.Done = func(*redlock.Op) {}
		require.Panics(t, func() { _ = c.Submit(op) })
		require.NoError(t, l.Release(t.Context())) // it is handed over
		got := locked(t, waits)
		broken.Store(false)
		require.NoError(t, got.Release(t.Context()))
		require.NoError(t, cluster.Submit(t, c, op))
	})
}

// TestFenceBadInput: an impossible clock refuses its own client by name and value; so does an
// operator's number without room for tokens. The log shows a number exceeded by nodes.
func TestFenceBadInput(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		servers := cluster.Start(t, 3)
		nodes := fakeredis.Addrs(servers)
		var log testkit.LogSink
		var year atomic.Int64
		c := cluster.Connect(t, nodes, fenced(0), func(c *redlock.Config) {
			c.Logger = log.Logger(slog.LevelInfo)
			knobs.Of(c).FenceClock = func() time.Time {
				if y := year.Load(); y != 0 {
					return time.Date(int(y), 1, 1, 0, 0, 0, 0, time.UTC)
				}
				return virtual.TimeOfDay()
			}
		})
		require.ErrorIs(t, c.RecoverFencing(t.Context(), 1<<53-1), redlock.ErrArgument)
		require.NoError(t, c.InitFencing(t.Context()))
		token := cluster.MustAcquire(t, c, "k", fenceTTL).Fence()
		for _, y := range []int64{1970, 2019, 2256, 2999, 1} {
			year.Store(y)
			_, err := c.TryAcquire(t.Context(), "other", fenceTTL)
			require.ErrorIs(t, err, redlock.ErrConfig)
			require.ErrorContains(t, err, fmt.Sprintf("the clock reads %04d-01-01T00:00:00Z", y))
			require.ErrorIs(t, errorOf(c.Acquire(t.Context(), "other", fenceTTL)), redlock.ErrConfig)
			require.ErrorIs(t, errorOf(c.TryAcquireAll(t.Context(), fenceTTL, "a", "b")), redlock.ErrConfig)
			require.ErrorIs(t, c.Submit(&redlock.Op{Kind: redlock.OpAcquire, Key: []byte("k"), TTL: fenceTTL, Done: func(*redlock.Op) {}}), redlock.ErrConfig)
			require.ErrorIs(t, c.InitFencing(t.Context()), redlock.ErrConfig)
		}
		year.Store(0)
		servers[:2].Flush()
		require.NoError(t, c.RecoverFencing(t.Context(), token-1000))
		cluster.AwaitHooks(t, c)
		require.Contains(t, log.String(), fmt.Sprintf("the greater counts\" atLeast=%d shown=", token-1000))
		require.Contains(t, log.String(), "restart no other node until it has")
		l := testkit.Must(c.Acquire(t.Context(), "k", fenceTTL))(t)
		require.Greater(t, l.Fence(), token)

		high := token + uint64(time.Hour/time.Microsecond)
		require.NoError(t, c.RecoverFencing(t.Context(), high), "all have their vote: they are raised")
		require.Greater(t, cluster.MustAcquire(t, c, "another", fenceTTL).Fence(), high)
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
			below, cancel := context.WithCancel(outer)
			defer cancel()
			again, _ := redlock.FenceFrom(below)
			require.Equal(t, first, again)
			l := cluster.MustAcquire(t, c, "other", fenceTTL)
			kept, stop := l.KeepAlive(below)
			defer stop()
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
