package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/fakeredis"
)

// TestBusy: what finds MaxWaiting operations waiting is refused at once, and
// those are not harmed.
func TestBusy(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		r := newRig(t, 3, portably(portable), func(c *redlock.Config) { c.MaxWaiting = 4 })
		held := mustAcquire(t, r.Client, "held", ttl)
		for _, s := range r.servers {
			s.Hang()
		}
		// What is sent is not waiting. How many are let out at a time is the
		// client's business, so submit until it says no.
		done := make(chan error, 1000)
		accepted := 0
		for ; ; accepted++ {
			require.Less(t, accepted, cap(done), "there is no bound")
			op := &redlock.Op{Kind: redlock.OpAcquire, Key: fmt.Append(nil, accepted), TTL: ttl}
			op.Done = func(op *redlock.Op) { done <- op.Err() }
			if err := r.Submit(op); err != nil {
				require.Equal(t, redlock.ErrBusy, err)
				break
			}
		}
		require.GreaterOrEqual(t, accepted, 4)
		left := held.Remaining()
		atOnce(t, func() {
			_, err := r.TryAcquire(t.Context(), "k", ttl)
			require.Equal(t, redlock.ErrBusy, err)
			require.Equal(t, redlock.ErrBusy, held.Extend(t.Context(), 100*time.Millisecond))
			require.Equal(t, redlock.ErrBusy, held.Release(t.Context()))
		})
		require.Greater(t, held.Remaining(), left-patience, "an extension that was not sent shortens nothing")

		ctx, cancel := context.WithCancel(t.Context())
		waiting := inBackground(func() (redlock.Lock, error) { return r.Acquire(ctx, "k", ttl) })
		r.heal(t)
		for range accepted {
			require.NoError(t, get(t, done))
		}
		require.NoError(t, get(t, waiting).err, "Acquire tries again")
		cancel()
		require.NoError(t, held.Release(t.Context()))
	})
}

// TestMaxInFlight: a node that owes too many replies is given up.
func TestMaxInFlight(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		r := newRig(t, 3, portably(portable), func(c *redlock.Config) { c.MaxInFlight = 50 })
		r.servers[0].Hang()
		for i := range 200 {
			require.NoError(t, mustAcquire(t, r.Client, fmt.Sprint(i), ttl).Release(t.Context()))
		}
		require.NoError(t, r.servers[0].Heal())
		r.awaitUp(t)
		require.Greater(t, r.servers[0].Count("INFO"), int64(1), "it was dialled anew")
	})
}

// TestMaxInFlightBelowDebts: a node may be owed more releases than it may owe
// replies, and is paid all the same.
func TestMaxInFlightBelowDebts(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		r := newRigOf(t, startN(t, 3, fakeredis.Options{Flavor: fakeredis.Valkey9}), portably(portable),
			func(c *redlock.Config) { c.MaxInFlight = 8 })
		var locks []redlock.Lock
		for i := range 20 {
			locks = append(locks, mustAcquire(t, r.Client, fmt.Sprint(i), ttl))
			quiet(t, r.Client) // or one node falls behind the two that decide
		}
		r.servers[0].Down()
		await(t, "down", func() bool { return !r.Nodes()[0].Up })
		for _, l := range locks {
			require.NoError(t, l.Release(t.Context()))
		}
		r.heal(t)
		r.awaitEmpty(t)
		require.True(t, r.Nodes()[0].Up)
		require.EqualValues(t, 2, r.Nodes()[0].Connects)
	})
}

// TestStallTimeout: so is one that owes replies and is silent.
func TestStallTimeout(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		r := newRig(t, 3, portably(portable), func(c *redlock.Config) { c.StallTimeout = 200 * time.Millisecond })
		r.servers[0].Partition()
		require.NoError(t, mustAcquire(t, r.Client, "k", ttl).Release(t.Context()))
		await(t, "a new connection", func() bool { return r.servers[0].Count("INFO") > 1 })
		r.awaitUp(t)
	})
}

// TestClosed: nothing begins after Close, which may be called again, and by many.
func TestClosed(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		r := newRig(t, 3, portably(portable))
		l := mustAcquire(t, r.Client, "k", ttl)
		var wg sync.WaitGroup
		for range 4 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}()
		}
		wg.Wait()
		require.NoError(t, r.Close())
		for _, f := range []func() (redlock.Lock, error){
			func() (redlock.Lock, error) { return r.TryAcquire(t.Context(), "k", ttl) },
			func() (redlock.Lock, error) { return r.Acquire(t.Context(), "k", ttl) },
			func() (redlock.Lock, error) { return l, l.Extend(t.Context(), ttl) },
			func() (redlock.Lock, error) { return l, l.Release(t.Context()) },
			func() (redlock.Lock, error) {
				return l, r.Submit(&redlock.Op{Kind: redlock.OpAcquire, Key: []byte("k"), TTL: ttl, Done: func(*redlock.Op) {}})
			},
		} {
			_, err := f()
			require.Equal(t, redlock.ErrClosed, err)
		}
		require.Equal(t, 3, r.holders("k"), "what is held stays held")
		require.Positive(t, l.Remaining())
	})
}

// TestCloseEndsWhatIsUnderWay: after CloseTimeout, with ErrClosed for all that
// nobody has answered, the ones that retry included.
func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		r := newRig(t, 3, portably(portable), func(c *redlock.Config) { c.CloseTimeout = 20 * time.Millisecond })
		for _, s := range r.servers {
			s.Set("taken", "another's", 0)
		}
		retrying := inBackground(func() (redlock.Lock, error) { return r.Acquire(context.Background(), "taken", ttl) })
		r.awaitAll(t, 3, "SET", "taken")
		for _, s := range r.servers {
			s.Mute()
		}
		flying := inBackground(func() (redlock.Lock, error) { return r.TryAcquire(context.Background(), "k", ttl) })
		queued := make(chan error, 100)
		for i := range cap(queued) {
			op := &redlock.Op{Kind: redlock.OpAcquire, Key: fmt.Append(nil, i), TTL: ttl}
			op.Done = func(op *redlock.Op) { queued <- op.Err() }
			if err := r.Submit(op); err != nil {
				queued <- err
			}
		}
		atOnce(t, func() { require.NoError(t, r.Close()) })
		require.Equal(t, redlock.ErrClosed, get(t, retrying).err)
		require.Equal(t, redlock.ErrClosed, get(t, flying).err)
		for range cap(queued) {
			require.Equal(t, redlock.ErrClosed, get(t, queued))
		}
	})
}

// TestCloseSendsWhatNobodyWaitsFor: the release of an attempt that was given
// up on is still sent.
func TestCloseSendsWhatNobodyWaitsFor(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		servers := startN(t, 3, fakeredis.Options{Now: stopped()})
		r := newRigOf(t, servers, portably(portable), func(c *redlock.Config) { c.CloseTimeout = patience })
		for _, s := range r.servers {
			s.Mute()
		}
		ctx, cancel := context.WithCancel(t.Context())
		attempt := inBackground(func() (redlock.Lock, error) { return r.TryAcquire(ctx, "k", ttl) })
		r.awaitAll(t, 1, "SET", "k")
		cancel()
		require.Equal(t, context.Canceled, get(t, attempt).err)
		closed := make(chan error, 1)
		go func() { closed <- r.Close() }()
		r.heal(t)
		require.NoError(t, get(t, closed))
		r.awaitEmpty(t)
	})
}

// TestCloseLeavesNothing: no goroutine and no descriptor, in whatever state the
// nodes are.
func TestCloseLeavesNothing(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		servers := fakeredis.StartN(t, 5)
		open := descriptors()
		for range 5 {
			c, err := redlock.New(redlock.Config{
				Nodes: fakeredis.Addrs(servers), Portable: portable,
				NodeTimeout: 20 * time.Millisecond, StallTimeout: 100 * time.Millisecond, CloseTimeout: 10 * time.Millisecond,
			})
			require.NoError(t, err)
			l, err := c.Acquire(t.Context(), "k", ttl)
			require.NoError(t, err)
			servers[0].Down()
			servers[1].Hang()
			servers[2].HangDeaf()
			require.ErrorIs(t, l.Release(t.Context()), redlock.ErrNoQuorum)
			_, err = c.TryAcquire(t.Context(), "another", ttl)
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
			require.NoError(t, c.Close())
			for _, s := range servers {
				require.NoError(t, s.Heal())
				await(t, "no connections", func() bool { return s.Conns() == 0 })
				s.Flush()
			}
			await(t, "no goroutines", func() bool { return ours() == "" })
		}
		await(t, "no descriptors", func() bool { return descriptors() <= open })
	})
}

// ours is the stacks of the client's goroutines.
func ours() string {
	buf := make([]byte, 1<<20)
	var found []string
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, "redlock/conn.") || strings.Contains(stack, "redlock/internal/engine.") {
			found = append(found, stack)
		}
	}
	return strings.Join(found, "\n\n")
}

// descriptors is how many this process has open, or 0 where that is not told.
func descriptors() int {
	list, err := os.ReadDir("/proc/self/fd")
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	return len(list)
}
