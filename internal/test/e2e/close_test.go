package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestClosed: nothing begins after Close, which may be called again, and by many.
func TestClosed(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		r := cluster.New(t, 3, cluster.Portable(portable))
		l := cluster.MustAcquire(t, r.Client, "k", ttl)
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
		testkit.Join(t, &wg)
		require.NoError(t, r.Close())
		for _, f := range []func() (redlock.Lock, error){
			func() (redlock.Lock, error) { return r.TryAcquire(t.Context(), "k", ttl) },
			func() (redlock.Lock, error) { return r.Acquire(t.Context(), "k", ttl) },
			func() (redlock.Lock, error) { return r.TryAcquireAll(t.Context(), ttl, "a", "b") },
			func() (redlock.Lock, error) { _, err := r.Inspect(t.Context(), "k"); return l, err },
			func() (redlock.Lock, error) { return l, l.Extend(t.Context(), ttl) },
			func() (redlock.Lock, error) { return l, l.Release(t.Context()) },
			func() (redlock.Lock, error) {
				return l, r.Submit(&redlock.Op{Kind: redlock.OpAcquire, Key: []byte("k"), TTL: ttl, Done: func(*redlock.Op) {}})
			},
		} {
			_, err := f()
			require.Equal(t, redlock.ErrClosed, err)
		}
		require.Equal(t, 3, r.Holders("k"), "what is held stays held")
		require.Positive(t, l.Remaining())
	})
}

// TestCloseEndsWhatIsUnderWay: after CloseTimeout, with ErrClosed for all calls without an answer,
// callers that retry included.
func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3, func(c *redlock.Config) { knobs.Of(c).CloseTimeout = 20 * time.Millisecond }).NoPushes()
		r.Servers.Take("taken")
		retrying := testkit.InBackground(func() (redlock.Lock, error) { return r.Acquire(context.Background(), "taken", ttl) })
		r.AwaitCalls(t, 3, "SET", "taken")
		r.Servers.Mute()
		flying := testkit.InBackground(func() (redlock.Lock, error) { return r.TryAcquire(context.Background(), "k", ttl) })
		queued := make(chan error, 100)
		for i := range cap(queued) {
			op := &redlock.Op{Kind: redlock.OpAcquire, Key: fmt.Append(nil, i), TTL: ttl}
			op.Done = func(op *redlock.Op) { queued <- op.Err() }
			if err := r.Submit(op); err != nil {
				queued <- err
			}
		}
		testkit.AtOnce(t, func() { require.NoError(t, r.Close()) })
		require.Equal(t, redlock.ErrClosed, testkit.Get(t, retrying).Err)
		require.Equal(t, redlock.ErrClosed, testkit.Get(t, flying).Err)
		for range cap(queued) {
			require.Equal(t, redlock.ErrClosed, testkit.Get(t, queued))
		}
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
			l, err := c.Acquire(t.Context(), "k", ttl)
			require.NoError(t, err)
			servers[0].Down()
			servers[1].Hang()
			servers[2].HangUnread()
			require.ErrorIs(t, l.Release(t.Context()), redlock.ErrNoQuorum)
			_, err = c.TryAcquire(t.Context(), "another", ttl)
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
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
